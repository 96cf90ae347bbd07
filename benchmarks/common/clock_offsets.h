/* How far the ranks' clocks are from rank 0's, as a line over time, for windows that begin at the same
 * time on all ranks. Ranks that read one clock know their offset. Of the others one for each clock, its
 * leader, is compared by messages with another leader, its reference, so that the references of all make
 * a binomial tree under rank 0: many pairs at once, as in HCA3 of Hunold and Carpen-Amarie (2018), so
 * that it takes the longer by the logarithm of the clocks' number. Each rank has a line through two
 * comparisons with its reference, and the lines are put together along the tree. */
#ifndef WYEAST_CLOCK_OFFSETS_H
#define WYEAST_CLOCK_OFFSETS_H

#include "ranks_alike.h"

/* In seconds: `at` that time of this rank's leader's clock, `offset` added to it made its reference's;
 * that was wrong by at most `error`: half the shortest round trip by which it was found. */
typedef struct {
    double at, offset, error;
} clock_offset;

typedef struct {
    ranks_alike by_clock; /* The ranks that read this rank's clock. */
    double from_leader;   /* The seconds of this rank's beginning by the leader's beginning. */
    double step;          /* Of the clock: what shared time is known to. */
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

/* The time of another clock at a time of this one. */
double time_by_line(const clock_line *line, double seconds);

/* The line from a clock to its reference's reference, by those from each to the next. */
clock_line line_over(const clock_line *to_reference, const clock_line *onwards);

/* Rank 0's line for this rank's clock, by those of all leaders to their references. `error` is how wrong
 * this one is at most, and becomes that of the whole way. Collective over MPI_COMM_WORLD. */
clock_line line_to_rank_0(const clock_comparison *clocks, const clock_line *to_reference,
                          double *error);

/* How wrong the line through `before` and `after` is at most between them. Where the clock keeps its
 * rate that is the larger of their errors. If it had another rate until `before`, by more than the
 * errors explain, it changed it: what `after` is then off the earlier line is added. */
double error_between(const clock_offset *earlier, const clock_offset *before,
                     const clock_offset *after);

#endif
