/* How often an operation is timed and how the ranks begin it: the same for every program. */
#ifndef WYEAST_SAMPLING_H
#define WYEAST_SAMPLING_H

#include <stddef.h>

#include "estimate.h"
#include "options.h"

typedef struct {
    long long warmup;          /* Untimed iterations before the first timed one. */
    long long iterations;      /* In a batch. */
    long long most_iterations; /* In all batches together. */
    double relative_width;     /* Of the median's 95% interval, wanted; 0: one batch, whatever. */
    const char *synchronisation;
    int raw;
    int raw_by_rank;
    int estimate; /* Time a little, and say how long everything would take. */
} sampling;

extern const char *const synchronisation_names[];

/* The rows of a program's table of options for a `sampling`. */
#define SAMPLING_OPTIONS(plan, iterations_text, synchronisation_text)                              \
    {.name = "iterations", .kind = OPTION_NUMBER, .value = &(plan).iterations,                     \
     .initial = iterations_text, .least = 1, .most = 100000000,                                    \
     .help = "timed iterations; with --relative-width, those of one batch"},                       \
    {.name = "warmup", .kind = OPTION_NUMBER, .value = &(plan).warmup, .initial = "10",            \
     .least = 0, .most = 100000000, .help = "untimed iterations before them"},                     \
    {.name = "relative-width", .kind = OPTION_FRACTION, .value = &(plan).relative_width,           \
     .initial = "0", .most = 10,                                                                   \
     .help = "batches until the width of the median's 95% interval is this part of the median;"  \
             " 0: one batch"},                                                                     \
    {.name = "most-iterations", .kind = OPTION_NUMBER, .value = &(plan).most_iterations,           \
     .initial = "1000000", .least = 1, .most = 100000000,                                          \
     .help = "the most iterations in all batches together"},                          \
    {.name = "synchronisation", .kind = OPTION_CHOICE, .value = &(plan).synchronisation,           \
     .initial = synchronisation_text, .names = synchronisation_names,                              \
     .help = "how the ranks begin an iteration"},                                                  \
    {.name = "raw", .kind = OPTION_FLAG, .value = &(plan).raw,                                     \
     .help = "also print the time of every iteration"},                                            \
    {.name = "raw-by-rank", .kind = OPTION_FLAG, .value = &(plan).raw_by_rank,                     \
     .help = "also print each rank's time of every iteration"},                                \
    ESTIMATE_OPTION((plan).estimate)

/* What is timed. `run` is called by every rank; a rank that has no part in it returns at once.
 * `before`, where there is one, is called untimed before each iteration. `settle`, where there is
 * one, is called untimed by every rank when some runs in a row are over and the ranks go back to
 * MPI: an operation without MPI may leave one rank waiting for another that has gone on.
 * Where rank 0 begins an operation and sees its end, as of an echo, an iteration's time is
 * rank 0's own: another rank's begins when it waits, which says nothing of the operation. */
typedef struct {
    void (*run)(void *context);
    void (*before)(void *context);
    void *context;
    void (*settle)(void *context);
    int timed_by_rank_0;
} operation;

/* End some runs in a row that were not timed; take_samples does so by itself. */
void settle_runs(const operation *operation);

/* On rank 0, in seconds: an iteration's time is the longest of the ranks' own, with a window from
 * the first rank's beginning to the last one's end; of an operation that rank 0 times, always its
 * own. Elsewhere those pointers are NULL. */
typedef struct {
    double *times;
    double *own_times; /* On every rank: what it took itself for the same iterations. */
    size_t count;       /* On every rank. */
    size_t discarded;       /* With a window: iterations that some rank began late. */
    double *median_by_rank; /* Each rank's own time from beginning to end. */
    double clock_error;     /* With a window: the largest of any batch, at its beginning or end. */
    double each;            /* With --estimate: from one iteration to the next, whatever is between. */
} samples;

/* Time an operation. Collective over MPI_COMM_WORLD. Returns 0, or -1 with a sentence on all ranks:
 * no memory, a clock that went back, or no iteration that began in time. */
int take_samples(const sampling *plan, const operation *operation, samples *taken,
                 complaint *about);

void free_samples(samples *taken);

#endif
