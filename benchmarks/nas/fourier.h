/* Fourier transforms of many lines at once, without scaling. */
#ifndef WYEAST_FOURIER_H
#define WYEAST_FOURIER_H

#include <stddef.h>

#include "../common/options.h"

/* Lines that are transformed together: enough for the widest registers. */
enum { LINES = 8 };

typedef struct {
    int length;            /* A power of two. */
    double *cosine, *sine; /* Of 2 pi i / length. */
    double *work;          /* Room for the lines twice, real and imaginary parts apart. */
} fourier;

fourier make_fourier(const program_description *program, int length);
void free_fourier(fourier *f);

/* Transform `count` lines of complex numbers in place (real and imaginary part behind each other).
 * Numbers of one line are `step` complex numbers apart, and line i begins i * `next` after the
 * first. `sign` is that of the exponent. */
void transform_lines(const fourier *f, double *lines, int count, size_t next, size_t step,
                     int sign);

#endif
