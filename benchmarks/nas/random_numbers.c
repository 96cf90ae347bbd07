#include "random_numbers.h"

uint64_t random_jump(uint64_t steps)
{
    uint64_t product = 1, square = RANDOM_MULTIPLIER;
    for (; steps; steps >>= 1) {
        if (steps & 1)
            product = random_product(product, square);
        square = random_product(square, square);
    }
    return product;
}

uint64_t random_after(uint64_t x, uint64_t steps)
{
    return random_product(x, random_jump(steps));
}
