#include "stream_kernels.h"

#include "vector_clones.h"

VECTOR_CLONES void stream_copy(void *arrays)
{
    const stream_arrays *s = arrays;
    const double *restrict a = s->a;
    double *restrict c = s->c;
    for (size_t i = 0; i < s->count; i++)
        c[i] = a[i];
}

VECTOR_CLONES void stream_scale(void *arrays)
{
    const stream_arrays *s = arrays;
    const double *restrict c = s->c;
    double *restrict b = s->b;
    for (size_t i = 0; i < s->count; i++)
        b[i] = STREAM_SCALAR * c[i];
}

VECTOR_CLONES void stream_add(void *arrays)
{
    const stream_arrays *s = arrays;
    const double *restrict a = s->a, *restrict b = s->b;
    double *restrict c = s->c;
    for (size_t i = 0; i < s->count; i++)
        c[i] = a[i] + b[i];
}

VECTOR_CLONES void stream_triad(void *arrays)
{
    const stream_arrays *s = arrays;
    const double *restrict b = s->b, *restrict c = s->c;
    double *restrict a = s->a;
    for (size_t i = 0; i < s->count; i++)
        a[i] = b[i] + STREAM_SCALAR * c[i];
}
