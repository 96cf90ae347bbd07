/* One file of all ranks, in which each has its part. */
#ifndef WYEAST_SHARED_FILE_H
#define WYEAST_SHARED_FILE_H

#include <mpi.h>
#include <stddef.h>

/* Of which a rank's part consists where parts are interleaved, in bytes. */
#define FILE_BLOCK 1024

/* An MPICH without ROMIO knows what a file is called, and has no call for one. */
#ifdef MPI_MODE_CREATE
#define HAS_FILES 1
#else
#define HAS_FILES 0
#endif

typedef struct {
    const char *program; /* Which says why it ends where a call fails. */
    int rank, ranks;
    size_t bytes; /* Of a part. */
    int interleaved;
#if HAS_FILES
    MPI_File handle;
#endif
} shared_file;

/* Make a file in a folder; it goes when it is closed. Both are collective over MPI_COMM_WORLD. Every
 * call that MPI does not do is the end of the program, with MPI's reason. */
void open_file(shared_file *file, const char *folder);
void close_file(shared_file *file);

/* See a rank's part, and nothing else, from now on. Collective. */
void look_at_part(shared_file *file, int of_rank);

/* The part that is seen, by all ranks together or by each on its own. */
void write_part(shared_file *file, const unsigned char *data, int together);
void read_part(shared_file *file, unsigned char *data, int together);

/* Bring what was written to the storage. Collective. */
void synchronise_file(shared_file *file);

#endif
