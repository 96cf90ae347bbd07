#include "keys.h"

#include <stdint.h>

#include "random_numbers.h"

void draw_keys(const is_reference *reference, long long first, int count, int *keys)
{
    const double quarter = (double)(1LL << reference->log2_largest_key) / 4.0;
    uint64_t x = random_after(RANDOM_SEED, (uint64_t)first * 4);
    for (int i = 0; i < count; i++) {
        double sum = 0.0;
        for (int j = 0; j < 4; j++)
            sum += uniform(x = next_random(x));
        keys[i] = (int)(quarter * sum);
    }
}

demand demand_of_keys(const is_reference *reference, int ranks, int rank)
{
    const long long keys = 1LL << reference->log2_keys;
    const double own =
        (double)(first_of_part(keys, ranks, rank + 1) - first_of_part(keys, ranks, rank));
    /* As drawn, by buckets, and received. */
    return (demand){3.0 * own * sizeof(int), own};
}
