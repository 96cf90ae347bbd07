/* The integers that IS sorts (RNR-94-007, section 2.6). */
#ifndef WYEAST_KEYS_H
#define WYEAST_KEYS_H

#include "benchmark.h"

/* Draw so many keys, from the one with this number on. */
void draw_keys(const is_reference *reference, long long first, int count, int *keys);

/* What a rank asks for at least: the table of how many keys there are of each value comes on top, and
 * whole buckets, so that it can have some more keys than its share. */
demand demand_of_keys(const is_reference *reference, int ranks, int rank);

#endif
