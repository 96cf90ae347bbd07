/* How far the ranks' clocks are from rank 0's, now and as a line over time, for windows that begin at
 * the same time on all ranks. Ranks that read one clock know their offset; of the others one for each
 * clock sends messages to rank 0 to estimate it. */
#ifndef WYEAST_CLOCK_OFFSETS_H
#define WYEAST_CLOCK_OFFSETS_H

#include <mpi.h>

/* In seconds: `at` that time of this rank's clock, `offset` added to it made rank 0's; that was wrong by
 * at most `error`: half the shortest round trip by which it was found. */
typedef struct {
    double at, offset, error;
} clock_offset;

typedef struct {
    MPI_Comm sharing; /* The ranks that read this rank's clock; the lowest leads them. */
    MPI_Comm leaders; /* MPI_COMM_NULL on ranks that do not lead. */
    double from_leader; /* The seconds of this rank's beginning by the leader's beginning. */
    double step;        /* Of the clock: what shared time is known to. */
} clock_comparison;

/* All three are collective over MPI_COMM_WORLD. */
void begin_comparison(clock_comparison *clocks);
clock_offset compare_clocks(const clock_comparison *clocks);
void end_comparison(clock_comparison *clocks);

/* An offset that changes by `rate` in a second; the rate is wrong by at most `rate_error`. */
typedef struct {
    double at, offset, rate, rate_error;
} clock_line;

/* The line through two comparisons; through the surer one alone where no clock drifts as fast as it
 * would take to go through both. */
clock_line line_through(const clock_offset *earlier, const clock_offset *later);

/* The line that goes on from the later of two comparisons; without a rate where they show none. */
clock_line line_onwards(const clock_offset *earlier, const clock_offset *later);

/* Rank 0's time at a time of this rank's clock. */
double time_of_rank_0(const clock_line *line, double seconds);

/* How wrong the line through `before` and `after` is at most between them. Where the clock keeps its
 * rate that is the larger of their errors. If it had another rate until `before`, by more than the
 * errors explain, it changed it: what `after` is then off the earlier line is added. */
double error_between(const clock_offset *earlier, const clock_offset *before,
                     const clock_offset *after);

#endif
