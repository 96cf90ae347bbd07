/* How much the caches of a node hold. */
#ifndef WYEAST_CACHE_SIZE_H
#define WYEAST_CACHE_SIZE_H

/* Bytes of all last-level caches of this node together; 0 where the kernel does not say. */
double last_level_caches(void);

#endif
