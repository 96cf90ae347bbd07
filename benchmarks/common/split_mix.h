/* SplitMix64 (Steele, Lea and Flood 2014): the same numbers on every machine. */
#ifndef WYEAST_SPLIT_MIX_H
#define WYEAST_SPLIT_MIX_H

#include <stdint.h>

/* By which a state grows from one number to the next. */
#define SPLIT_MIX_STEP UINT64_C(0x9e3779b97f4a7c15)

/* The generator's finaliser: neighbouring numbers become unlike ones. */
static inline uint64_t mixed(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static inline uint64_t next_number(uint64_t *state)
{
    return mixed(*state += SPLIT_MIX_STEP);
}

#endif
