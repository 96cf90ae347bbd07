/* Included by kernels_template.h: vectors of matrices, how they are read and multiplied, and the
 * exponential. The names are defined there. */
/* Rows begin where a number may, not where a vector must. */
typedef NUMBER VECTOR __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(NUMBER))));

typedef struct {
    VECTOR re, im;
} COMPLEX;

typedef struct {
    COMPLEX e[3][3];
} SU3;

typedef struct {
    VECTOR d[3];
    COMPLEX o[3]; /* Elements 01, 02, 12. */
} HERMITIAN;

static inline __attribute__((always_inline)) const NUMBER *NAME(link)(const field *f,
                                                                      const chunk *c, int direction)
{
    return (const NUMBER *)f->links + row_of(f, c->z, c->t, direction) + c->at;
}

static inline __attribute__((always_inline)) NUMBER *NAME(momentum)(const field *f, const chunk *c,
                                                                    int direction)
{
    return (NUMBER *)f->momenta + row_of(f, c->z, c->t, direction) / MATRIX * MOMENTUM + c->at;
}

static inline __attribute__((always_inline)) chunk NAME(neighbour)(const field *f, const chunk *c,
                                                                   int direction, int step)
{
    chunk there = *c;
    if (direction < 2) {
        const size_t distance = direction == 0 ? 1 : f->stride;
        there.at = step > 0 ? c->at + distance : c->at - distance;
    } else if (direction == 2) {
        there.z += step;
    } else {
        there.t += step;
    }
    return there;
}

/* Ask for the lines of some rows, to the second-level cache, before they are needed: a chunk reads
 * hundreds of rows, more than a processor finds to go on by itself. */
EVERYWHERE NAME(fetch)(const NUMBER *row, size_t length, size_t count)
{
    enum { TO_READ = 0, SECOND_LEVEL = 2 };
    for (size_t i = 0; i < count; i++)
        __builtin_prefetch(row + i * length, TO_READ, SECOND_LEVEL);
}

EVERYWHERE NAME(load)(SU3 *m, const NUMBER *row, size_t length)
{
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++, row += 2 * length) {
            m->e[i][j].re = *(const VECTOR *)row;
            m->e[i][j].im = *(const VECTOR *)(row + length);
        }
}

EVERYWHERE NAME(load_link)(SU3 *m, const field *f, const chunk *c, int direction)
{
    NAME(load)(m, NAME(link)(f, c, direction), f->length);
}

EVERYWHERE NAME(store)(NUMBER *row, size_t length, const SU3 *m)
{
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++, row += 2 * length) {
            *(VECTOR *)row = m->e[i][j].re;
            *(VECTOR *)(row + length) = m->e[i][j].im;
        }
}

EVERYWHERE NAME(load_hermitian)(HERMITIAN *h, const NUMBER *row, size_t length)
{
    for (int i = 0; i < 3; i++, row += length)
        h->d[i] = *(const VECTOR *)row;
    for (int i = 0; i < 3; i++, row += 2 * length) {
        h->o[i].re = *(const VECTOR *)row;
        h->o[i].im = *(const VECTOR *)(row + length);
    }
}

EVERYWHERE NAME(store_hermitian)(NUMBER *row, size_t length, const HERMITIAN *h)
{
    for (int i = 0; i < 3; i++, row += length)
        *(VECTOR *)row = h->d[i];
    for (int i = 0; i < 3; i++, row += 2 * length) {
        *(VECTOR *)row = h->o[i].re;
        *(VECTOR *)(row + length) = h->o[i].im;
    }
}

/* sum += a b, where either may be the conjugate. */
EVERYWHERE NAME(add_product)(COMPLEX *sum, const COMPLEX *a, int conjugate_a, const COMPLEX *b,
                             int conjugate_b)
{
    sum->re += a->re * b->re;
    sum->im = conjugate_b ? sum->im - a->re * b->im : sum->im + a->re * b->im;
    sum->re = conjugate_a == conjugate_b ? sum->re - a->im * b->im : sum->re + a->im * b->im;
    sum->im = conjugate_a ? sum->im - a->im * b->re : sum->im + a->im * b->re;
}

/* c = a b, or with `add` c += a b; either factor may be the adjoint. */
EVERYWHERE NAME(multiply)(SU3 *c, const SU3 *a, int adjoint_a, const SU3 *b, int adjoint_b, int add)
{
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) {
            COMPLEX sum = add ? c->e[i][j] : (COMPLEX){{0}, {0}};
            for (int k = 0; k < 3; k++)
                NAME(add_product)(&sum, adjoint_a ? &a->e[k][i] : &a->e[i][k], adjoint_a,
                                  adjoint_b ? &b->e[j][k] : &b->e[k][j], adjoint_b);
            c->e[i][j] = sum;
        }
}

/* 2 Re(a b conj c). */
static inline __attribute__((always_inline)) VECTOR NAME(twice_real)(const COMPLEX *a,
                                                                     const COMPLEX *b,
                                                                     const COMPLEX *c)
{
    return (NUMBER)2 * ((a->re * b->re - a->im * b->im) * c->re +
                        (a->re * b->im + a->im * b->re) * c->im);
}

/* e = exp(iq). By Cayley and Hamilton q^3 = q tr(q^2)/2 + det q, so every power of q, and the
 * exponential's series with them, is a polynomial of second degree with numbers as coefficients. */
EVERYWHERE NAME(exponential)(SU3 *e, const HERMITIAN *q)
{
    enum { TERMS = sizeof(NUMBER) == sizeof(double) ? 22 : 13 };
    const COMPLEX *o = q->o;
    VECTOR n[3];
    for (int i = 0; i < 3; i++)
        n[i] = o[i].re * o[i].re + o[i].im * o[i].im;
    const VECTOR *d = q->d;
    HERMITIAN s; /* q^2 */
    s.d[0] = d[0] * d[0] + n[0] + n[1];
    s.d[1] = d[1] * d[1] + n[0] + n[2];
    s.d[2] = d[2] * d[2] + n[1] + n[2];
    const VECTOR d01 = d[0] + d[1], d02 = d[0] + d[2], d12 = d[1] + d[2];
    s.o[0].re = d01 * o[0].re + o[1].re * o[2].re + o[1].im * o[2].im;
    s.o[0].im = d01 * o[0].im + o[1].im * o[2].re - o[1].re * o[2].im;
    s.o[1].re = d02 * o[1].re + o[0].re * o[2].re - o[0].im * o[2].im;
    s.o[1].im = d02 * o[1].im + o[0].re * o[2].im + o[0].im * o[2].re;
    s.o[2].re = d12 * o[2].re + o[0].re * o[1].re + o[0].im * o[1].im;
    s.o[2].im = d12 * o[2].im + o[0].re * o[1].im - o[0].im * o[1].re;
    const VECTOR half_trace = (NUMBER)0.5 * (s.d[0] + s.d[1] + s.d[2]);
    const VECTOR determinant = d[0] * (d[1] * d[2] - n[2]) - d[1] * n[1] - d[2] * n[0] +
                               NAME(twice_real)(&o[0], &o[2], &o[1]);
    /* Horner's rule from the last term, for the even terms (real) and the odd ones (imaginary). */
    COMPLEX k[3] = {{{0}, {0}}, {{0}, {0}}, {{0}, {0}}};
    double factorials[TERMS + 1] = {1.0};
    for (int i = 1; i <= TERMS; i++)
        factorials[i] = factorials[i - 1] * i;
    for (int i = TERMS; i >= 0; i--) {
        const NUMBER term = (NUMBER)((i & 2 ? -1.0 : 1.0) / factorials[i]);
        const COMPLEX last = k[2];
        k[2] = k[1];
        k[1].re = k[0].re + last.re * half_trace;
        k[1].im = k[0].im + last.im * half_trace;
        k[0].re = last.re * determinant;
        k[0].im = last.im * determinant;
        if (i % 2)
            k[0].im += term;
        else
            k[0].re += term;
    }
    for (int i = 0; i < 3; i++) {
        e->e[i][i].re = k[0].re + k[1].re * d[i] + k[2].re * s.d[i];
        e->e[i][i].im = k[0].im + k[1].im * d[i] + k[2].im * s.d[i];
    }
    static const int pairs[3][2] = {{0, 1}, {0, 2}, {1, 2}};
    for (int i = 0; i < 3; i++) {
        const VECTOR rr = k[1].re * o[i].re + k[2].re * s.o[i].re;
        const VECTOR ii = k[1].im * o[i].im + k[2].im * s.o[i].im;
        const VECTOR ri = k[1].re * o[i].im + k[2].re * s.o[i].im;
        const VECTOR ir = k[1].im * o[i].re + k[2].im * s.o[i].re;
        e->e[pairs[i][0]][pairs[i][1]] = (COMPLEX){rr - ii, ri + ir};
        e->e[pairs[i][1]][pairs[i][0]] = (COMPLEX){rr + ii, ir - ri};
    }
}
