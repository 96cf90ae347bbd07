/* The rate of some computing that all ranks do at once, with the clock that their cores had. */
#ifndef WYEAST_RATE_MEASUREMENT_H
#define WYEAST_RATE_MEASUREMENT_H

#include "../common/communication.h"
#include "../common/options.h"
#include "../common/sampling.h"

/* The rows of a program's table of options for how often it times. */
#define RATE_OPTIONS(plan, iterations_text)                                                        \
    {.name = "iterations", .kind = OPTION_NUMBER, .value = &(plan).iterations,                     \
     .initial = iterations_text, .least = 1, .most = 1000000, .help = "timed iterations"},         \
    {.name = "warmup", .kind = OPTION_NUMBER, .value = &(plan).warmup, .initial = "1",             \
     .least = 0, .most = 1000000, .help = "untimed iterations before them"}

typedef struct {
    operation timed;       /* Its `before` is called untimed before each iteration. */
    long long repetitions; /* Of the work in one iteration: its time is divided by them. */
    const char *keys;      /* The members of the result that are its own, as JSON. */
} rate_work;

/* Time the work on all ranks at once, each iteration from a barrier on, and write the result: the
 * time of an iteration is that of the rank that took longest. Between the iterations each rank
 * counts its core's cycles. A fault ends the program. Collective over MPI_COMM_WORLD. */
void measure_rate(const program_description *program, const sampling *plan, const rate_work *work);

/* Page-aligned memory for so many numbers; where some rank has none, the program ends with a
 * sentence. Collective over MPI_COMM_WORLD. */
double *numbers_or_leave(const program_description *program, size_t count);

#endif
