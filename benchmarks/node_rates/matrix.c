#include "matrix.h"

double next_number(unsigned long long *state)
{
    *state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
    /* The upper digits of such a generator are the random ones. */
    return (double)(*state >> 11) * 0x1p-53;
}

void fill_uniform(double *numbers, size_t count, unsigned long long seed)
{
    unsigned long long state = seed;
    next_number(&state); /* Seeds that are close give first numbers that are. */
    for (size_t i = 0; i < count; i++)
        numbers[i] = next_number(&state) - 0.5;
}
