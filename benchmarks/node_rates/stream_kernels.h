/* The four loops of STREAM (J. McCalpin, 1995), over arrays of doubles. */
#ifndef WYEAST_STREAM_KERNELS_H
#define WYEAST_STREAM_KERNELS_H

#include <stddef.h>

typedef struct {
    double *a, *b, *c;
    size_t count;
} stream_arrays;

#define STREAM_SCALAR 3.0

void stream_copy(void *arrays);  /* c = a */
void stream_scale(void *arrays); /* b = scalar c */
void stream_add(void *arrays);   /* c = a + b */
void stream_triad(void *arrays); /* a = b + scalar c */

#endif
