/* Iterations that begin at times of rank 0's clock, each with its own window (SKaMPI), for
 * sampling.c. All functions are collective over MPI_COMM_WORLD. */
#ifndef WYEAST_WINDOWS_H
#define WYEAST_WINDOWS_H

#include "clock_offsets.h"
#include "sampling.h"

typedef struct {
    double length; /* From one beginning to the next; all are in seconds. */
    double left;   /* What all windows together may still last. */
    double error;  /* The largest of this rank's line to rank 0's clock in any batch. */
    double comparing; /* What the last batch's comparing of clocks took. */
    clock_comparison clocks;
    clock_offset first; /* Before the warm-up: rates are known best over the longest time. */
} windows;

/* Run the warm-up and have the first length from it, for `most` timed iterations. Returns 0, or -1 on
 * all ranks where memory ran out on one; then there is nothing to end. */
int begin_windows(windows *w, const operation *operation, long long warmup, size_t most);
void end_windows(windows *w);

/* How many of the wanted iterations may still be begun. */
size_t windows_left(const windows *w, size_t wanted);

/* Run iterations, with their times by rank 0's clock; `late` says which ones this rank began late. */
void run_windows(windows *w, const operation *operation, size_t count, double *began, double *ended,
                 int *late);

/* Double the length where so many of a batch were late that it must be too short. Returns whether that
 * was so. */
int widen_windows(windows *w, size_t late, size_t count);

#endif
