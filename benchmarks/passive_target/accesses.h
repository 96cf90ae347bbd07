/* What the origin does to the target's memory, and how it is seen to have been done. */
#ifndef WYEAST_ACCESSES_H
#define WYEAST_ACCESSES_H

#include "../common/arguments.h"
#include "windows.h"

typedef struct access_kind access_kind;

typedef struct {
    const access_kind *kind;
    memory_window window;
    int rank;
    size_t bytes, in_a_row; /* Of one access; how many of them, each in a place of its own. */
    /* The origin's: what it brings, what a swap expects to find, and what it gets. */
    unsigned char *given, *expected, *taken;
    int swapped; /* Whether the target has what swaps bring: the next ones put back what was there. */
    long long operations; /* Of the target's computation meanwhile; 0: it has none. */
} access;

struct access_kind {
    const char *name;
    int writes, fetches;  /* Whether the target's memory changes; whether the origin gets it. */
    int adds;             /* What is written is added to what was there; numbers, then. */
    size_t fixed_bytes;   /* Of operations on one number; 0: as many bytes as asked for. */
    void (*start)(access *a, size_t offset); /* One of them, by its place in bytes. */
    /* Left to MPI_Wait, which ends what the origin has to do with it; the others end at the target. */
    int has_request;
};

extern const char *const access_names[];

/* NULL where there is none, as with an MPI that has no such calls. */
const access_kind *find_access(const char *name);

/* Accesses in a row, each complete before the next; the target's part is its computation. */
void run_access(void *context);

/* Untimed, when accesses in a row are over: what was left on its way gets there. */
void settle_accesses(void *context);

/* As measure_communication wants them. */
void prepare_access(void *context, unsigned long long n);
long long verify_access(void *context, unsigned long long n, complaint *about);

#endif
