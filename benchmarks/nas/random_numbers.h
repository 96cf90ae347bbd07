/* The random numbers of the specification (RNR-94-007, section 2.3): x' = 5^13 x mod 2^46. */
#ifndef WYEAST_RANDOM_NUMBERS_H
#define WYEAST_RANDOM_NUMBERS_H

#include <stdint.h>

#define RANDOM_MULTIPLIER UINT64_C(1220703125)
#define RANDOM_MASK ((UINT64_C(1) << 46) - 1)
#define RANDOM_SEED_OF_EP UINT64_C(271828183)
#define RANDOM_SEED UINT64_C(314159265)

/* A product that is cut to 64 bits still has the 46 that count. */
static inline uint64_t random_product(uint64_t x, uint64_t multiplier)
{
    return (x * multiplier) & RANDOM_MASK;
}

static inline uint64_t next_random(uint64_t x)
{
    return random_product(x, RANDOM_MULTIPLIER);
}

/* The number from 0 to 1 that a state stands for. */
static inline double uniform(uint64_t x)
{
    return (double)(int64_t)x * 0x1p-46;
}

/* What a state is multiplied with to come so many steps further. */
uint64_t random_jump(uint64_t steps);

/* The state so many steps after another one. */
uint64_t random_after(uint64_t x, uint64_t steps);

#endif
