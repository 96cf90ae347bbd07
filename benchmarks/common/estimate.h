/* --estimate: a few iterations of each point are timed, and from these it is said how long all of
 * them take. Needs no MPI. */
#ifndef WYEAST_ESTIMATE_H
#define WYEAST_ESTIMATE_H

#include <stddef.h>

#define ESTIMATE_ITERATIONS 20

#define ESTIMATE_OPTION(variable)                                                                  \
    {.name = "estimate", .kind = OPTION_FLAG, .value = &(variable),                                \
     .help = "time only a few iterations, and say how long all would take"}

/* What a sweep would take, in seconds: at least, and with all iterations that --relative-width may
 * take and all points that --refine may add. */
typedef struct {
    size_t points, most_points;
    double seconds, most_seconds;
} sweep_estimate;

/* How many of the requested iterations, and of those before them, an estimate times. */
long long few_iterations(long long iterations);
long long few_warmups(long long warmup);

/* Add a point that takes `once` seconds, whatever its iterations, and `each` for one iteration, of
 * which it has `least` to `most`, warm-up included. */
void estimate_point(sweep_estimate *sweep, double once, double each, double least, double most);

/* Add points that may or may not come, of at most this many seconds each. */
void estimate_possible_points(sweep_estimate *sweep, size_t points, double seconds);

/* Print the record; on rank 0. */
void print_estimate(const sweep_estimate *sweep);

#endif
