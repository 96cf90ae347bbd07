#include "estimate.h"

#include <stdio.h>

#include "record_pieces.h"

long long few_iterations(long long iterations)
{
    return iterations < ESTIMATE_ITERATIONS ? iterations : ESTIMATE_ITERATIONS;
}

long long few_warmups(long long warmup)
{
    return warmup < 1 ? warmup : 1;
}

void estimate_point(sweep_estimate *sweep, double once, double each, double least, double most)
{
    sweep->points++;
    sweep->most_points++;
    sweep->seconds += once + each * least;
    sweep->most_seconds += once + each * most;
}

void estimate_possible_points(sweep_estimate *sweep, size_t points, double seconds)
{
    sweep->most_points += points;
    sweep->most_seconds += (double)points * seconds;
}

void print_estimate(const sweep_estimate *sweep)
{
    printf("{\"record\":\"estimate\",\"points\":%zu,\"most_points\":%zu,\"estimated_s\":",
           sweep->points, sweep->most_points);
    print_seconds(stdout, sweep->seconds);
    fputs(",\"at_most_s\":", stdout);
    print_seconds(stdout, sweep->most_seconds);
    fputs("}\n", stdout);
}
