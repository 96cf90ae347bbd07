#include "fourier.h"

#include <math.h>
#include <stdlib.h>

#include "../common/buffers.h"
#include "benchmark.h"
#include "for_this_processor.h"

fourier make_fourier(const program_description *program, int length)
{
    const size_t n = (size_t)length;
    fourier f = {length, reserve(program, n, sizeof(double)), reserve(program, n, sizeof(double)),
                 (double *)page_aligned(4 * n * LINES * sizeof(double))};
    if (!f.work)
        leave_at_once(program->name, "no memory for the lines of a Fourier transform");
    for (int i = 0; i < length; i++) {
        f.cosine[i] = cos(2.0 * 3.14159265358979323846 * i / length);
        f.sine[i] = sin(2.0 * 3.14159265358979323846 * i / length);
    }
    return f;
}

void free_fourier(fourier *f)
{
    free(f->cosine);
    free(f->sine);
    free(f->work);
}

/* Lines with their real and imaginary parts apart: number i of line l stands at i * LINES + l. */
typedef struct {
    double *real, *imaginary;
} parts;

/* Stockham's self-sorting transform, decimation in frequency. At each step there are `stride`
 * interleaved transforms of `length` numbers; as all lines do the same, a number is a block of
 * stride * LINES of them here. The exponent's sign is negative. */

/* One step of radix 4: quarters of `length` are combined; w is exp(-2 pi i p / length). */
PART_OF_IT void step_of_4(const fourier *f, int length, size_t stride, parts from, parts to)
{
    const size_t block = stride * LINES, quarter = (size_t)(length / 4) * block;
    for (int p = 0; p < length / 4; p++) {
        const int angle = p * (f->length / length);
        const double c1 = f->cosine[angle], s1 = -f->sine[angle];
        const double c2 = f->cosine[2 * angle], s2 = -f->sine[2 * angle];
        const double c3 = f->cosine[3 * angle], s3 = -f->sine[3 * angle];
        const double *restrict in = from.real + (size_t)p * block;
        const double *restrict in_i = from.imaginary + (size_t)p * block;
        double *restrict out = to.real + 4 * (size_t)p * block;
        double *restrict out_i = to.imaginary + 4 * (size_t)p * block;
#pragma GCC ivdep
        for (size_t q = 0; q < block; q++) {
            const double sum = in[q] + in[q + 2 * quarter];
            const double sum_i = in_i[q] + in_i[q + 2 * quarter];
            const double difference = in[q] - in[q + 2 * quarter];
            const double difference_i = in_i[q] - in_i[q + 2 * quarter];
            const double odd = in[q + quarter] + in[q + 3 * quarter];
            const double odd_i = in_i[q + quarter] + in_i[q + 3 * quarter];
            /* i times the difference of the other two. */
            const double turned = in_i[q + 3 * quarter] - in_i[q + quarter];
            const double turned_i = in[q + quarter] - in[q + 3 * quarter];
            out[q] = sum + odd;
            out_i[q] = sum_i + odd_i;
            const double one = difference - turned, one_i = difference_i - turned_i;
            const double two = sum - odd, two_i = sum_i - odd_i;
            const double three = difference + turned, three_i = difference_i + turned_i;
            out[q + block] = one * c1 - one_i * s1;
            out_i[q + block] = one * s1 + one_i * c1;
            out[q + 2 * block] = two * c2 - two_i * s2;
            out_i[q + 2 * block] = two * s2 + two_i * c2;
            out[q + 3 * block] = three * c3 - three_i * s3;
            out_i[q + 3 * block] = three * s3 + three_i * c3;
        }
    }
}

/* The last step where the length is no power of four. */
PART_OF_IT void step_of_2(size_t stride, parts from, parts to)
{
    const size_t block = stride * LINES;
    const double *restrict in = from.real, *restrict in_i = from.imaginary;
    double *restrict out = to.real, *restrict out_i = to.imaginary;
#pragma GCC ivdep
    for (size_t q = 0; q < block; q++) {
        out[q] = in[q] + in[q + block];
        out_i[q] = in_i[q] + in_i[q + block];
        out[q + block] = in[q] - in[q + block];
        out_i[q + block] = in_i[q] - in_i[q + block];
    }
}

/* Where lines are next to each other, or where a line's numbers are, a loop over them is innermost. */
PART_OF_IT void load(const fourier *f, const double *lines, int count, size_t next, size_t step,
                     parts to)
{
    if (next == 1 && count == LINES) {
        for (size_t i = 0; i < (size_t)f->length; i++)
            for (size_t l = 0; l < LINES; l++) {
                to.real[i * LINES + l] = lines[2 * (i * step + l)];
                to.imaginary[i * LINES + l] = lines[2 * (i * step + l) + 1];
            }
        return;
    }
    for (size_t i = 0; i < (size_t)f->length; i++)
        for (size_t l = 0; l < LINES; l++) {
            /* What is too much is a line again. */
            const size_t line = l < (size_t)count ? l : 0, at = 2 * (line * next + i * step);
            to.real[i * LINES + l] = lines[at];
            to.imaginary[i * LINES + l] = lines[at + 1];
        }
}

PART_OF_IT void store(const fourier *f, double *lines, int count, size_t next, size_t step,
                      parts from)
{
    if (next == 1 && count == LINES) {
        for (size_t i = 0; i < (size_t)f->length; i++)
            for (size_t l = 0; l < LINES; l++) {
                lines[2 * (i * step + l)] = from.real[i * LINES + l];
                lines[2 * (i * step + l) + 1] = from.imaginary[i * LINES + l];
            }
        return;
    }
    for (size_t i = 0; i < (size_t)f->length; i++)
        for (size_t l = 0; l < (size_t)count; l++) {
            lines[2 * (l * next + i * step)] = from.real[i * LINES + l];
            lines[2 * (l * next + i * step) + 1] = from.imaginary[i * LINES + l];
        }
}

FOR_THIS_PROCESSOR
static void transform_some(const fourier *f, double *lines, int count, size_t next, size_t step,
                           int sign)
{
    const size_t room = (size_t)f->length * LINES;
    parts from = {f->work, f->work + room}, to = {f->work + 2 * room, f->work + 3 * room};
    load(f, lines, count, next, step, from);
    /* With real and imaginary parts exchanged, before and after, the exponent has the other sign. */
    if (sign > 0)
        from = (parts){from.imaginary, from.real};
    size_t stride = 1;
    for (int length = f->length; length > 1;) {
        if (length >= 4) {
            step_of_4(f, length, stride, from, to);
            length /= 4;
            stride *= 4;
        } else {
            step_of_2(stride, from, to);
            length /= 2;
        }
        const parts done = to;
        to = from;
        from = done;
    }
    if (sign > 0)
        from = (parts){from.imaginary, from.real};
    store(f, lines, count, next, step, from);
}

void transform_lines(const fourier *f, double *lines, int count, size_t next, size_t step, int sign)
{
    for (int first = 0; first < count; first += LINES) {
        const int some = count - first < LINES ? count - first : LINES;
        transform_some(f, lines + 2 * (size_t)first * next, some, next, step, sign);
    }
}
