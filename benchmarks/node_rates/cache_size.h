/* How much the caches of a node hold. */
#ifndef WYEAST_CACHE_SIZE_H
#define WYEAST_CACHE_SIZE_H

/* Bytes of all last-level caches of this node together; 0 where the kernel does not say. */
double last_level_caches(void);

/* The same by a folder as the kernel has it in /sys/devices/system/cpu. A processor of which it says
 * nothing is taken to have as much as the one that has most: arrays too large are none too small. */
double caches_listed_in(const char *processors);

#endif
