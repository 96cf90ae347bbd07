#include "memory_copy.h"

#include <string.h>

#include "clock.h"

#define BLOCKS 25
#define BYTES_OF_A_BLOCK ((size_t)1 << 18) /* Enough work that the clock's resolution is no limit. */

double best_copy_time(void *to, const void *from, size_t bytes)
{
    if (bytes == 0)
        return 0.0;
    size_t copies = bytes < BYTES_OF_A_BLOCK ? BYTES_OF_A_BLOCK / bytes : 1;
    double best = 0.0;
    for (int block = 0; block < BLOCKS; block++) {
        double began = seconds_now();
        for (size_t i = 0; i < copies; i++) {
            memcpy(to, from, bytes);
            /* The copy is looked at, so the compiler must make every one of them. */
            __asm__ volatile("" : : "r"(to) : "memory");
        }
        double time = (seconds_now() - began) / (double)copies;
        if (block == 0 || time < best)
            best = time;
    }
    return best;
}
