/* How long an emulated rank computes, and computing for so long. */
#ifndef WYEAST_COMPUTING_H
#define WYEAST_COMPUTING_H

#include <stddef.h>

#include "../common/arguments.h"

typedef struct {
    const char *distribution;
    double deviation; /* The standard deviation as a part of the mean. */
    unsigned long long seed;
    int sleeps; /* Whether a rank sleeps instead of computing. */
} computing;

/* The names of the distributions and of the ways to compute, ended by NULL. */
extern const char *const distribution_names[];
extern const char *const compute_names[];

/* Returns 0, or -1 with a sentence where a deviation does not go with its distribution. */
int check_computing(const computing *how, complaint *about);

/* The computing times in seconds of one rank in one run. They follow from these numbers alone, so
 * they are the same whatever other ranks and applications there are. */
void draw_computing(const computing *how, int application, int rank, unsigned long long run,
                    double mean, double *times, size_t steps);

/* Compute, or sleep, until seconds_now is `seconds` after `begin`. Returns what seconds_now says then,
 * which is before `begin` only if the clock went back. */
double compute_until(const computing *how, double begin, double seconds);

#endif
