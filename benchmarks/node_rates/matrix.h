/* Numbers for matrices, the same on every machine. */
#ifndef WYEAST_MATRIX_H
#define WYEAST_MATRIX_H

#include <stddef.h>

/* Numbers between -0.5 and 0.5, which follow from the seed. */
void fill_uniform(double *numbers, size_t count, unsigned long long seed);

/* The next number of a linear congruential generator (Knuth's for MMIX), from 0 to below 1. */
double next_number(unsigned long long *state);

#endif
