/* The collective operations that are timed, what each needs, and its calls. */
#ifndef WYEAST_CALLS_H
#define WYEAST_CALLS_H

#include <mpi.h>
#include <stddef.h>

/* What a rank of the group has in each of its two buffers: one block, at the root one for each rank, or
 * everywhere one for each rank. */
typedef enum { ONE, OF_ROOT, OF_ALL } extent;
typedef enum { NO_REDUCTION, LEAST, SUM } reduction;
/* Of which ranks a reduction's result is: of all, of those up to this one, or of those below it. */
typedef enum { OF_EVERY_RANK, UP_TO_OWN, BELOW_OWN } reduced_ranks;
/* Where MPI lets a rank have in one buffer what it gives and gets. */
typedef enum { NOWHERE, AT_ROOT, EVERYWHERE } in_place_at;

typedef struct call call;

typedef struct {
    const char *name;
    extent send, receive;
    int root_sends, root_receives;
    reduction reduces;
    reduced_ranks of;
    int unequal; /* Blocks have different lengths. */
    in_place_at in_place;
    int is_barrier;
    /* NULL: this MPI has no such call. `start` begins a request, `open` makes a persistent one. */
    void (*run)(void *context);
    void (*start)(call *c);
    void (*open)(call *c);
} collective;

struct call {
    const collective *what;
    void (*run)(void *context); /* In the form that it is called in. */
    MPI_Comm comm;
    int rank, ranks;
    int first; /* The place in the world of this group's rank 0; its others follow. */
    unsigned char *send, *receive, *unrelated;
    size_t bytes, scrubbed;
    int in_place;        /* Whether this rank has one buffer for both. */
    void *given, *taken; /* What the calls get: a buffer, or MPI_IN_PLACE. */
    /* With unequal blocks alone: of each rank, what goes to it and comes from it, in bytes; of a
     * reduction in doubles. */
    int *to, *to_start, *from, *from_start;
    MPI_Datatype *types; /* MPI_BYTE for each rank. */
    MPI_Op op;
    MPI_Request request;
    long long operations; /* Of a computation beside the call. */
};

/* How many numbers a reduction is of, each rank's. */
int doubles(const call *c);

/* The names of all operations, ended by NULL. */
extern const char *const operation_names[];

/* The operation of a name, or NULL. */
const collective *find_collective(const char *name);

#endif
