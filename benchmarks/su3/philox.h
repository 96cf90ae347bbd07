/* Random numbers that follow from a key and a counter alone, so that they belong to places of the
 * lattice and not to ranks: Philox4x32-10 of Salmon, Moraes, Dror and Shaw (SC'11, table 2). */
#ifndef WYEAST_PHILOX_H
#define WYEAST_PHILOX_H

#include <stdint.h>

typedef struct {
    uint32_t word[4];
} philox_block;

typedef struct {
    uint32_t word[2];
} philox_key;

philox_block philox(philox_block counter, philox_key key);

/* Whether the published test vectors come out. */
int philox_is_right(void);

#endif
