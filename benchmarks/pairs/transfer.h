/* The ways in which two ranks exchange messages. */
#ifndef WYEAST_TRANSFER_H
#define WYEAST_TRANSFER_H

#include <mpi.h>
#include <stddef.h>

typedef struct transfer transfer;

typedef struct {
    const char *name;
    int has_window, has_partitions;
    void (*run)(transfer *t);   /* One iteration; NULL where this MPI has no such calls. */
    void (*open)(transfer *t);  /* Untimed, before the first and after the last iteration. */
    void (*close)(transfer *t);
} transfer_method;

struct transfer {
    const transfer_method *method;
    int rank, partner, begins, takes_part;
    unsigned char *send, *receive;
    size_t bytes, window;
    int partitions;
    MPI_Request *requests;
};

extern const char *const transfer_names[];

const transfer_method *find_transfer(const char *name);

/* How many messages an iteration sends one after another from one rank. */
size_t messages_of(const transfer *t);

/* With a window only one of the two sends messages that count, and the other receives them. */
int sends_messages(const transfer *t);
int receives_messages(const transfer *t);

/* One iteration of a `transfer`; a rank that has no part in it returns at once. */
void run_transfer(void *context);

#endif
