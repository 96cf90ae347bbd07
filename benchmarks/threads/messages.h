/* The messages of all threads of a rank to those of the other rank, by each way to keep them apart. */
#ifndef WYEAST_THREAD_MESSAGES_H
#define WYEAST_THREAD_MESSAGES_H

#include <mpi.h>
#include <stddef.h>

typedef struct {
    int rank;
    size_t threads, window, bytes; /* Messages of a thread, and how long each is. */
    unsigned char *buffer;         /* Of all messages, thread by thread. */
    MPI_Comm *comms;               /* One for each thread. */
    MPI_Request *requests;         /* One for each message. */
    MPI_Request whole;             /* Of a partitioned message. */
} messages;

typedef struct {
    const char *name;
    /* Around all runs; NULL where there is nothing to do. */
    void (*open)(messages *all);
    void (*close)(messages *all);
    void (*run)(void *context); /* NULL: this MPI has no such calls. */
} threads_method;

extern const char *const threads_method_names[];

const threads_method *find_threads_method(const char *name);

#endif
