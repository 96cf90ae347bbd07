#include "summary.h"

#include <stdlib.h>
#include <string.h>

static int compare(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static double quantile(const double *sorted, size_t count, double probability)
{
    double position = probability * (double)(count - 1);
    size_t below = (size_t)position;
    if (below + 1 >= count)
        return sorted[count - 1];
    double weight = position - (double)below;
    return sorted[below] + weight * (sorted[below + 1] - sorted[below]);
}

time_summary summarise(const double *values, size_t count, double *scratch)
{
    memcpy(scratch, values, count * sizeof *values);
    qsort(scratch, count, sizeof *scratch, compare);
    double sum = 0.0;
    for (size_t i = 0; i < count; i++)
        sum += scratch[i];
    double mean = sum / (double)count;
    /* Rounding may carry the mean of equal values past them. */
    if (mean < scratch[0])
        mean = scratch[0];
    if (mean > scratch[count - 1])
        mean = scratch[count - 1];
    return (time_summary){
        .min = scratch[0],
        .quartile1 = quantile(scratch, count, 0.25),
        .median = quantile(scratch, count, 0.5),
        .mean = mean,
        .quartile3 = quantile(scratch, count, 0.75),
        .max = scratch[count - 1],
    };
}
