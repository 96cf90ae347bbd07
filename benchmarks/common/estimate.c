#include "estimate.h"

#include <stdio.h>

#include "record_pieces.h"

double shorten_for_estimate(long long *iterations, long long *warmup)
{
    const double all = (double)*iterations + (double)*warmup;
    if (*iterations > ESTIMATE_ITERATIONS)
        *iterations = ESTIMATE_ITERATIONS;
    if (*warmup > 1)
        *warmup = 1;
    return all / ((double)*iterations + (double)*warmup);
}

void print_estimate(size_t points, double seconds)
{
    printf("{\"record\":\"estimate\",\"points\":%zu,\"estimated_s\":", points);
    print_seconds(stdout, seconds);
    fputs("}\n", stdout);
}
