/* --estimate: a few iterations are timed, and all of them are said to take so much longer. */
#ifndef WYEAST_ESTIMATE_H
#define WYEAST_ESTIMATE_H

#include <stddef.h>

#define ESTIMATE_ITERATIONS 3

#define ESTIMATE_OPTION(variable)                                                                  \
    {.name = "estimate", .kind = OPTION_FLAG, .value = &(variable),                                \
     .help = "time a few iterations only, and say how long all would take"}

/* Leave a few iterations and one warm-up; returns how many times longer all of them take. */
double shorten_for_estimate(long long *iterations, long long *warmup);

/* Print the record; on rank 0. */
void print_estimate(size_t points, double seconds);

#endif
