/* Memory of the target that the origin reaches, by each way in which MPI makes a window. */
#ifndef WYEAST_MEMORY_WINDOWS_H
#define WYEAST_MEMORY_WINDOWS_H

#include <mpi.h>
#include <stddef.h>

enum { ORIGIN = 0, TARGET = 1 };

typedef struct {
    MPI_Win handle;
    const char *kind;
    unsigned char *memory; /* This rank's own; the target's is what the origin reaches. */
    MPI_Aint place;        /* Of the target's memory in the window, as the calls name it. */
} memory_window;

extern const char *const window_names[];

/* Why the two ranks cannot have such a window, or NULL. Collective over MPI_COMM_WORLD. */
const char *lacks_window(const char *kind);

/* Make a window of some bytes on both ranks, with an access to all of it (MPI_Win_lock_all) that
 * lasts until it is freed. Returns 0, or -1 where memory ran out on this rank. */
int open_window(memory_window *window, const char *kind, size_t bytes);
void close_window(memory_window *window);

/* Whether a rank's own loads and stores and the other's accesses meet in one memory, so that
 * MPI_Win_sync is all that stands between them. */
int has_one_memory(const memory_window *window);

#endif
