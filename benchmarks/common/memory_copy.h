/* How fast memory alone is: the limit that no message can pass. */
#ifndef WYEAST_MEMORY_COPY_H
#define WYEAST_MEMORY_COPY_H

#include <stddef.h>

/* The best time in seconds of many plain copies of `bytes` bytes; 0 for 0 bytes. */
double best_copy_time(void *to, const void *from, size_t bytes);

#endif
