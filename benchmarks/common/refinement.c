#include "refinement.h"

#include <math.h>
#include <mpi.h>

/* Sizes that are nearer than this part of themselves are one, else noise would be refined for ever. */
#define NEAR 0.01

typedef struct {
    size_t bytes;
    double time;
} point;

static size_t between(const refinement *how, point low, point high, size_t added,
                      double (*measure)(void *context, size_t bytes), void *context)
{
    const size_t half = (high.bytes - low.bytes) / 2 / how->least_gap * how->least_gap;
    const size_t near = (size_t)(NEAR * (double)high.bytes);
    if (half < how->least_gap || half < near || added >= how->most_added)
        return added;
    point middle = {low.bytes + half, 0.0};
    middle.time = measure(context, middle.bytes);
    added++;
    const double share = (double)half / (double)(high.bytes - low.bytes);
    const double line = low.time + share * (high.time - low.time);
    int bends = fabs(middle.time - line) > how->tolerance * line;
    MPI_Bcast(&bends, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (!bends)
        return added;
    added = between(how, low, middle, added, measure, context);
    return between(how, middle, high, added, measure, context);
}

size_t refine(const refinement *how, const size_t *sizes, const double *times, size_t count,
              double (*measure)(void *context, size_t bytes), void *context)
{
    size_t added = 0;
    for (size_t i = 0; i + 1 < count; i++)
        if (sizes[i + 1] > sizes[i])
            added = between(how, (point){sizes[i], times[i]}, (point){sizes[i + 1], times[i + 1]},
                            added, measure, context);
    return added;
}
