/* Messages of more elements than an int counts, by each way in which a program can have them. */
#ifndef WYEAST_LONG_MESSAGES_H
#define WYEAST_LONG_MESSAGES_H

#include <mpi.h>
#include <stddef.h>

typedef struct long_message long_message;

typedef struct {
    const char *name;
    /* NULL: this MPI has no such calls, or none for this operation. */
    void (*send)(long_message *m);
    void (*receive)(long_message *m);
    void (*broadcast)(long_message *m);
    void (*reduce)(long_message *m);
} counting;

struct long_message {
    const counting *how;
    int rank; /* Of two. */
    unsigned char *given, *taken;
    size_t bytes;
    MPI_Datatype all; /* Which has all bytes in it. */
};

extern const char *const counting_names[];

const counting *find_counting(const char *name);

/* The type of which one element has all bytes of a message. */
void make_type(long_message *m);

#endif
