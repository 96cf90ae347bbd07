/* The collective operations that are timed, and what each needs. */
#ifndef WYEAST_CALLS_H
#define WYEAST_CALLS_H

#include <mpi.h>
#include <stddef.h>

/* What a rank of the group has in each of its two buffers, in messages of the asked size: one, at the
 * root one for each rank, or everywhere one for each rank. */
typedef enum { ONE, OF_ROOT, OF_ALL } extent;

typedef struct {
    const char *name;
    extent send, receive;
    int root_sends, root_receives, reduces;
    void (*run)(void *context);
} collective;

typedef struct {
    const collective *what;
    MPI_Comm comm;
    int rank, ranks;
    int first; /* The place in the world of this group's rank 0; its others follow. */
    unsigned char *send, *receive, *unrelated;
    size_t bytes, scrubbed;
} call;

/* How many messages that is. */
size_t messages_of(extent what, int rank, int ranks);

/* How many numbers a reduction is of. */
int doubles(const call *c);

extern const char *const operation_names[];

/* The operation of a name, or NULL. */
const collective *find_collective(const char *name);

int is_barrier(const collective *what);

#endif
