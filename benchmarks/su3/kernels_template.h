/* Included by kernels.c once for each precision and vector unit; defines a `kernels`. */
#define NAME(name) JOIN2(name, PRECISION, UNIT)
#define LANES (VECTOR_BYTES / sizeof(NUMBER))
#define VECTOR NAME(vector)
#define COMPLEX NAME(complex_vector)
#define SU3 NAME(matrix)
#define HERMITIAN NAME(hermitian)
#define EVERYWHERE static inline __attribute__((always_inline)) void

#include "matrices_template.h"

/* The two staples of a link in the plane of another direction. */
EVERYWHERE NAME(add_staples)(SU3 *sum, const field *f, const chunk *c, int mu, int nu)
{
    SU3 a, b, product;
    const chunk ahead = NAME(neighbour)(f, c, mu, 1), up = NAME(neighbour)(f, c, nu, 1);
    const chunk down = NAME(neighbour)(f, c, nu, -1), across = NAME(neighbour)(f, &ahead, nu, -1);
    NAME(load_link)(&a, f, &ahead, nu);
    NAME(load_link)(&b, f, &up, mu);
    NAME(multiply)(&product, &a, 0, &b, 1, 0);
    NAME(load_link)(&a, f, c, nu);
    NAME(multiply)(sum, &product, 0, &a, 1, 1);
    NAME(load_link)(&a, f, &down, mu);
    NAME(load_link)(&b, f, &across, nu);
    NAME(multiply)(&product, &a, 0, &b, 0, 0);
    NAME(load_link)(&a, f, &down, nu);
    NAME(multiply)(sum, &product, 1, &a, 0, 1);
}

/* What the turn of a chunk needs of other planes and of momenta. Of the planes before and behind in
 * t and ahead in z the last use is longest ago; others were used for the plane before. */
EVERYWHERE NAME(fetch_for_turn)(const field *f, const chunk *c, int mu)
{
    const chunk ahead = NAME(neighbour)(f, c, 3, 1), behind = NAME(neighbour)(f, c, 3, -1);
    const chunk up = NAME(neighbour)(f, c, 2, 1), across = NAME(neighbour)(f, &up, 3, -1);
    NAME(fetch)(NAME(momentum)(f, c, mu), f->length, MOMENTUM);
    NAME(fetch)(NAME(link)(f, &behind, mu), f->length, MATRIX);
    if (mu != 3)
        NAME(fetch)(NAME(link)(f, &ahead, mu), f->length, MATRIX);
    if (mu != 2)
        NAME(fetch)(NAME(link)(f, &up, mu), f->length, MATRIX);
    if (mu == 3)
        NAME(fetch)(NAME(link)(f, &across, mu), f->length, MATRIX);
}

static void NAME(turn)(field *f, const chunk *chunks, size_t count, double factor)
{
    static const int pairs[3][2] = {{0, 1}, {0, 2}, {1, 2}};
    for (const chunk *c = chunks; c < chunks + count; c++) {
        /* Lanes that are no site of this rank's keep their momenta 0. */
        const VECTOR scale = *(const VECTOR *)((const NUMBER *)f->mask + c->at) * (NUMBER)factor;
        const chunk *next = c + 1 < chunks + count ? c + 1 : c;
        for (int mu = 0; mu < DIMENSIONS; mu++) {
            NAME(fetch_for_turn)(f, next, mu);
            SU3 staples = {{{{{0}, {0}}}}}, u, m;
            for (int nu = 0; nu < DIMENSIONS; nu++)
                if (nu != mu)
                    NAME(add_staples)(&staples, f, c, mu, nu);
            NAME(load_link)(&u, f, c, mu);
            NAME(multiply)(&m, &u, 0, &staples, 0, 0);
            HERMITIAN h;
            NUMBER *row = NAME(momentum)(f, c, mu);
            NAME(load_hermitian)(&h, row, f->length);
            const VECTOR mean =
                (m.e[0][0].im + m.e[1][1].im + m.e[2][2].im) * ((NUMBER)1 / (NUMBER)3);
            for (int i = 0; i < 3; i++) {
                const COMPLEX *over = &m.e[pairs[i][0]][pairs[i][1]];
                const COMPLEX *under = &m.e[pairs[i][1]][pairs[i][0]];
                h.d[i] -= scale * (m.e[i][i].im - mean);
                h.o[i].re -= scale * (NUMBER)0.5 * (over->im + under->im);
                h.o[i].im += scale * (NUMBER)0.5 * (over->re - under->re);
            }
            NAME(store_hermitian)(row, f->length, &h);
        }
    }
}

static double NAME(sum_of)(const VECTOR *v)
{
    double sum = 0.0;
    for (size_t lane = 0; lane < LANES; lane++)
        sum += (double)(*v)[lane];
    return sum;
}

static double NAME(plaquettes)(const field *f)
{
    double total = 0.0;
    for (const chunk *c = f->chunks; c < f->chunks + f->all_chunks; c++) {
        VECTOR sum = {0};
        for (int mu = 0; mu < DIMENSIONS; mu++)
            for (int nu = mu + 1; nu < DIMENSIONS; nu++) {
                SU3 a, b, there, back;
                const chunk ahead = NAME(neighbour)(f, c, mu, 1);
                const chunk up = NAME(neighbour)(f, c, nu, 1);
                NAME(load_link)(&a, f, c, mu);
                NAME(load_link)(&b, f, &ahead, nu);
                NAME(multiply)(&there, &a, 0, &b, 0, 0);
                NAME(load_link)(&a, f, c, nu);
                NAME(load_link)(&b, f, &up, mu);
                NAME(multiply)(&back, &a, 0, &b, 0, 0);
                for (int i = 0; i < 3; i++)
                    for (int j = 0; j < 3; j++)
                        sum += there.e[i][j].re * back.e[i][j].re +
                               there.e[i][j].im * back.e[i][j].im;
            }
        sum *= *(const VECTOR *)((const NUMBER *)f->mask + c->at);
        total += NAME(sum_of)(&sum);
    }
    return total;
}

static double NAME(kinetic)(const field *f)
{
    double total = 0.0;
    for (const chunk *c = f->chunks; c < f->chunks + f->all_chunks; c++) {
        VECTOR sum = {0};
        for (int mu = 0; mu < DIMENSIONS; mu++) {
            HERMITIAN h;
            NAME(load_hermitian)(&h, NAME(momentum)(f, c, mu), f->length);
            for (int i = 0; i < 3; i++)
                sum += (NUMBER)0.5 * h.d[i] * h.d[i] + h.o[i].re * h.o[i].re +
                       h.o[i].im * h.o[i].im;
        }
        total += NAME(sum_of)(&sum);
    }
    return total;
}

static double NAME(largest_of)(double so_far, const field *f, const chunk *c, VECTOR v)
{
    v *= *(const VECTOR *)((const NUMBER *)f->mask + c->at);
    for (size_t lane = 0; lane < LANES; lane++)
        /* Not fmax, which would pass over what is no number. */
        if (!(fabs((double)v[lane]) <= so_far))
            so_far = fabs((double)v[lane]);
    return so_far;
}

/* sum of conj(a) b over a row. */
EVERYWHERE NAME(row_product)(COMPLEX *sum, const COMPLEX *a, const COMPLEX *b)
{
    *sum = (COMPLEX){{0}, {0}};
    for (int i = 0; i < 3; i++)
        NAME(add_product)(sum, &a[i], 1, &b[i], 0);
}

/* Scale a row whose square is near 1 to length 1: Newton's rule for 1/sqrt from 1 on. */
EVERYWHERE NAME(normalise)(COMPLEX *row)
{
    COMPLEX n;
    NAME(row_product)(&n, row, row);
    VECTOR scale = (NUMBER)1.5 - (NUMBER)0.5 * n.re;
    for (int i = 0; i < 3; i++)
        scale = scale * ((NUMBER)1.5 - (NUMBER)0.5 * n.re * scale * scale);
    for (int i = 0; i < 3; i++) {
        row[i].re *= scale;
        row[i].im *= scale;
    }
}

static double NAME(straighten)(field *f)
{
    double largest = 0.0;
    for (const chunk *c = f->chunks; c < f->chunks + f->all_chunks; c++)
        for (int mu = 0; mu < DIMENSIONS; mu++) {
            NUMBER *row = (NUMBER *)f->links + (NAME(link)(f, c, mu) - (NUMBER *)f->links);
            SU3 u, before;
            COMPLEX n;
            NAME(load)(&u, row, f->length);
            before = u;
            for (int i = 0; i < 3; i++) {
                NAME(row_product)(&n, u.e[i], u.e[i]);
                largest = NAME(largest_of)(largest, f, c, n.re - (NUMBER)1);
            }
            NAME(normalise)(u.e[0]);
            NAME(row_product)(&n, u.e[0], u.e[1]);
            largest = NAME(largest_of)(largest, f, c, n.re);
            largest = NAME(largest_of)(largest, f, c, n.im);
            for (int i = 0; i < 3; i++) {
                u.e[1][i].re -= n.re * u.e[0][i].re - n.im * u.e[0][i].im;
                u.e[1][i].im -= n.re * u.e[0][i].im + n.im * u.e[0][i].re;
            }
            NAME(normalise)(u.e[1]);
            for (int i = 0; i < 3; i++) {
                const COMPLEX *a = u.e[0], *b = u.e[1];
                const int j = (i + 1) % 3, k = (i + 2) % 3;
                u.e[2][i].re = a[j].re * b[k].re - a[j].im * b[k].im - a[k].re * b[j].re +
                               a[k].im * b[j].im;
                u.e[2][i].im = a[k].re * b[j].im + a[k].im * b[j].re - a[j].re * b[k].im -
                               a[j].im * b[k].re;
                largest = NAME(largest_of)(largest, f, c, u.e[2][i].re - before.e[2][i].re);
                largest = NAME(largest_of)(largest, f, c, u.e[2][i].im - before.e[2][i].im);
            }
            NAME(store)(row, f->length, &u);
        }
    return largest;
}

EVERYWHERE NAME(copy_rows)(NUMBER *restrict to, size_t to_stride, const NUMBER *restrict from,
                           size_t from_stride, int rows, int length)
{
    /* Rows are too short for the compiler's general loop. */
    enum { PART = 4 };
    for (int y = 0; y < rows; y++, to += to_stride, from += from_stride) {
        int x = 0;
        for (; x + PART <= length; x += PART)
            memcpy(to + x, from + x, PART * sizeof(NUMBER));
        for (; x < length; x++)
            to[x] = from[x];
    }
}

/* Where a region's first row of one plane and direction begins. */
static inline size_t NAME(first_of)(const field *f, const region *r, int z, int t, int mu)
{
    return row_of(f, r->from[2] + z, r->from[3] + t, mu) + f->origin +
           (size_t)r->from[1] * f->stride + (size_t)r->from[0];
}

/* The numbers of one plane and direction: row after row, whose next numbers lie apart by these. */
EVERYWHERE NAME(copy_plane)(NUMBER *out, size_t out_stride, size_t next_out, const NUMBER *in,
                            size_t in_stride, size_t next_in, int rows, int width)
{
    for (size_t c = 0; c < MATRIX; c++, out += next_out, in += next_in)
        if (width == 1)
            for (int y = 0; y < rows; y++)
                out[(size_t)y * out_stride] = in[(size_t)y * in_stride];
        else
            NAME(copy_rows)(out, out_stride, in, in_stride, rows, width);
}

/* Either side may be a message, in which the rows follow each other. */
EVERYWHERE NAME(transfer)(const field *f, const region *from, const region *to,
                          const NUMBER *message_in, NUMBER *message_out)
{
    const region *r = from ? from : to;
    const int width = r->extent[0], rows = r->extent[1];
    const size_t of_message = (size_t)width * (size_t)rows;
    NUMBER *links = f->links;
    for (int t = 0; t < r->extent[3]; t++)
        for (int z = 0; z < r->extent[2]; z++)
            for (int mu = 0; mu < DIMENSIONS; mu++) {
                if (!(r->links >> mu & 1u))
                    continue;
                NUMBER *out = to ? links + NAME(first_of)(f, to, z, t, mu) : message_out;
                const NUMBER *in = from ? links + NAME(first_of)(f, from, z, t, mu) : message_in;
                NAME(copy_plane)(out, to ? f->stride : (size_t)width, to ? f->length : of_message,
                                 in, from ? f->stride : (size_t)width,
                                 from ? f->length : of_message, rows, width);
                message_out = to ? message_out : out + MATRIX * of_message;
                message_in = from ? message_in : in + MATRIX * of_message;
            }
}

static void NAME(move_chunk)(field *f, const chunk *c, int mu, double step)
{
    HERMITIAN q;
    SU3 e, u, moved;
    NAME(load_hermitian)(&q, NAME(momentum)(f, c, mu), f->length);
    for (int i = 0; i < 3; i++) {
        q.d[i] *= (NUMBER)step;
        q.o[i].re *= (NUMBER)step;
        q.o[i].im *= (NUMBER)step;
    }
    NAME(exponential)(&e, &q);
    NUMBER *row = (NUMBER *)f->links + (NAME(link)(f, c, mu) - (NUMBER *)f->links);
    NAME(load)(&u, row, f->length);
    NAME(multiply)(&moved, &e, 0, &u, 0, 0);
    NAME(store)(row, f->length, &moved);
}

static void NAME(move)(field *f, double step, const own_border *borders, int count)
{
    const chunk *const last = f->chunks + f->all_chunks;
    NUMBER *links = f->links;
    for (const chunk *c = f->chunks, *end; c < last; c = end) {
        /* A plane's chunks that follow each other. Where others of it come later, among those at
         * borders, its borders are copied again. */
        for (end = c; end < last && end->z == c->z && end->t == c->t; end++)
            ;
        for (int mu = 0; mu < DIMENSIONS; mu++) {
            for (const chunk *one = c; one < end; one++) {
                const chunk *next = one + 1 < last ? one + 1 : one;
                NAME(fetch)(NAME(momentum)(f, next, mu), f->length, MOMENTUM);
                NAME(fetch)(NAME(link)(f, next, mu), f->length, MATRIX);
                NAME(move_chunk)(f, one, mu, step);
            }
            for (const own_border *b = borders; b < borders + count; b++) {
                if (!(b->from.links >> mu & 1u))
                    continue;
                NUMBER *to = links + NAME(first_of)(f, &b->to, c->z - 1, c->t - 1, mu);
                const NUMBER *from = links + NAME(first_of)(f, &b->from, c->z - 1, c->t - 1, mu);
                NAME(copy_plane)(to, f->stride, f->length, from, f->stride, f->length,
                                 b->from.extent[1], b->from.extent[0]);
            }
        }
    }
}

static void NAME(pack)(const field *f, const region *from, void *to)
{
    NAME(transfer)(f, from, NULL, NULL, to);
}

static void NAME(unpack)(field *f, const region *to, const void *from)
{
    NAME(transfer)(f, NULL, to, from, NULL);
}

static void NAME(copy)(field *f, const region *from, const region *to)
{
    NAME(transfer)(f, from, to, NULL, NULL);
}

#define TEXT2(text) #text
#define TEXT(text) TEXT2(text)
static const kernels NAME(kernels) = {
    TEXT(UNIT), sizeof(NUMBER), LANES, NAME(turn), NAME(move), NAME(plaquettes), NAME(kinetic),
    NAME(straighten), NAME(pack), NAME(unpack), NAME(copy)};

#undef TEXT
#undef TEXT2
#undef EVERYWHERE
#undef HERMITIAN
#undef SU3
#undef COMPLEX
#undef VECTOR
#undef LANES
#undef NAME
#undef NUMBER
#undef PRECISION
#undef UNIT
#undef VECTOR_BYTES
