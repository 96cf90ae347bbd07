#include "layout.h"

#include <stdlib.h>
#include <string.h>

#include "../common/split_mix.h"

const char *const layout_names[] = {"contiguous", "vector", "indexed", "struct", "subarray", NULL};

static size_t doubles(const layout *of)
{
    return of->bytes / sizeof(double);
}

/* All in a row. */

static size_t extent_of_contiguous(const layout *of)
{
    return of->bytes;
}

static size_t place_in_contiguous(const layout *of, size_t data, size_t *in_a_row)
{
    *in_a_row = of->bytes - data;
    return data;
}

static int describe_contiguous(const layout *of, MPI_Datatype *type)
{
    MPI_Type_contiguous((int)doubles(of), MPI_DOUBLE, type);
    return 1;
}

static void gather_contiguous(const layout *of, double *to, const unsigned char *from)
{
    memcpy(to, from, of->bytes);
}

static void spread_contiguous(const layout *of, unsigned char *to, const double *from)
{
    memcpy(to, from, of->bytes);
}

/* A double of every cache line: a column of a matrix. */

#define STRIDE 8

static size_t extent_of_vector(const layout *of)
{
    return doubles(of) ? ((doubles(of) - 1) * STRIDE + 1) * sizeof(double) : 0;
}

static size_t place_in_vector(const layout *of, size_t data, size_t *in_a_row)
{
    (void)of;
    *in_a_row = sizeof(double) - data % sizeof(double);
    return data / sizeof(double) * STRIDE * sizeof(double) + data % sizeof(double);
}

static int describe_vector(const layout *of, MPI_Datatype *type)
{
    MPI_Type_vector((int)doubles(of), 1, STRIDE, MPI_DOUBLE, type);
    return 1;
}

static void gather_vector(const layout *of, double *to, const unsigned char *from)
{
    const double *column = (const double *)(const void *)from;
    for (size_t i = 0; i < doubles(of); i++)
        to[i] = column[i * STRIDE];
}

static void spread_vector(const layout *of, unsigned char *to, const double *from)
{
    double *column = (double *)(void *)to;
    for (size_t i = 0; i < doubles(of); i++)
        column[i * STRIDE] = from[i];
}

/* One to four doubles with one to four others between them, as an unstructured mesh has its borders. */

#define LONGEST_BLOCK 4

static int drawn(size_t block, int of_what)
{
    return 1 + (int)(mixed(2 * block + (size_t)of_what) % LONGEST_BLOCK);
}

/* Draw blocks until they have all data. Returns 0, or -1 where memory ran out. */
static int draw_blocks(layout *made)
{
    const size_t most = doubles(made) + 1;
    made->lengths = calloc(most, sizeof *made->lengths);
    made->starts = calloc(most, sizeof *made->starts);
    made->before = calloc(most, sizeof *made->before);
    if (!made->lengths || !made->starts || !made->before)
        return -1;
    int start = 0, left = (int)doubles(made);
    for (size_t b = 0; left > 0; b = ++made->blocks) {
        const int length = drawn(b, 0);
        made->lengths[b] = length < left ? length : left;
        made->starts[b] = start;
        made->before[b] = (int)doubles(made) - left;
        start += length + drawn(b, 1);
        left -= made->lengths[b];
    }
    return 0;
}

static size_t extent_of_indexed(const layout *of)
{
    const size_t last = of->blocks - 1;
    return of->blocks ? (size_t)(of->starts[last] + of->lengths[last]) * sizeof(double) : 0;
}

static size_t place_in_indexed(const layout *of, size_t data, size_t *in_a_row)
{
    size_t block = 0, above = of->blocks;
    while (above - block > 1) {
        const size_t middle = (block + above) / 2;
        if ((size_t)of->before[middle] * sizeof(double) <= data)
            block = middle;
        else
            above = middle;
    }
    const size_t within = data - (size_t)of->before[block] * sizeof(double);
    *in_a_row = (size_t)of->lengths[block] * sizeof(double) - within;
    return (size_t)of->starts[block] * sizeof(double) + within;
}

static int describe_indexed(const layout *of, MPI_Datatype *type)
{
    MPI_Type_indexed((int)of->blocks, of->lengths, of->starts, MPI_DOUBLE, type);
    return 1;
}

static void gather_indexed(const layout *of, double *to, const unsigned char *from)
{
    const double *mesh = (const double *)(const void *)from;
    for (size_t b = 0; b < of->blocks; b++)
        for (int i = 0; i < of->lengths[b]; i++)
            *to++ = mesh[of->starts[b] + i];
}

static void spread_indexed(const layout *of, unsigned char *to, const double *from)
{
    double *mesh = (double *)(void *)to;
    for (size_t b = 0; b < of->blocks; b++)
        for (int i = 0; i < of->lengths[b]; i++)
            mesh[of->starts[b] + i] = *from++;
}

/* Particles, of which the force stays at home. */

typedef struct {
    double position[3];
    double force[3];
    double charge;
} particle;
#define SENT_OF_PARTICLE 4

static size_t particles(const layout *of)
{
    return doubles(of) / SENT_OF_PARTICLE;
}

static size_t extent_of_struct(const layout *of)
{
    return particles(of) * sizeof(particle);
}

static size_t place_in_struct(const layout *of, size_t data, size_t *in_a_row)
{
    (void)of;
    const size_t whole = data / (SENT_OF_PARTICLE * sizeof(double));
    const size_t at = data % (SENT_OF_PARTICLE * sizeof(double)), first = 3 * sizeof(double);
    *in_a_row = (at < first ? first : first + sizeof(double)) - at;
    return whole * sizeof(particle) + (at < first ? at : offsetof(particle, charge) + at - first);
}

static int describe_struct(const layout *of, MPI_Datatype *type)
{
    int lengths[2] = {3, 1};
    MPI_Aint starts[2] = {offsetof(particle, position), offsetof(particle, charge)};
    MPI_Datatype types[2] = {MPI_DOUBLE, MPI_DOUBLE}, one;
    MPI_Type_create_struct(2, lengths, starts, types, &one);
    MPI_Type_create_resized(one, 0, sizeof(particle), type);
    MPI_Type_free(&one);
    return (int)particles(of);
}

static void gather_struct(const layout *of, double *to, const unsigned char *from)
{
    const particle *all = (const particle *)(const void *)from;
    for (size_t i = 0; i < particles(of); i++, to += SENT_OF_PARTICLE) {
        memcpy(to, all[i].position, sizeof all[i].position);
        to[3] = all[i].charge;
    }
}

static void spread_struct(const layout *of, unsigned char *to, const double *from)
{
    particle *all = (particle *)(void *)to;
    for (size_t i = 0; i < particles(of); i++, from += SENT_OF_PARTICLE) {
        memcpy(all[i].position, from, sizeof all[i].position);
        all[i].charge = from[3];
    }
}

/* The inner part of a grid of three dimensions with a border of one around it, long in the first. */

#define INNER 4
#define OUTER (INNER + 2)

static size_t slabs(const layout *of)
{
    return doubles(of) / (INNER * INNER);
}

static size_t extent_of_subarray(const layout *of)
{
    return (slabs(of) + 2) * OUTER * OUTER * sizeof(double);
}

static size_t place_of_inner(size_t i, size_t j, size_t k)
{
    return (((i + 1) * OUTER + j + 1) * OUTER + k + 1) * sizeof(double);
}

static size_t place_in_subarray(const layout *of, size_t data, size_t *in_a_row)
{
    (void)of;
    const size_t row = INNER * sizeof(double), number = data / row;
    *in_a_row = row - data % row;
    return place_of_inner(number / INNER, number % INNER, 0) + data % row;
}

static int describe_subarray(const layout *of, MPI_Datatype *type)
{
    int sizes[3] = {(int)slabs(of) + 2, OUTER, OUTER}, inner[3] = {(int)slabs(of), INNER, INNER};
    int starts[3] = {1, 1, 1};
    MPI_Type_create_subarray(3, sizes, inner, starts, MPI_ORDER_C, MPI_DOUBLE, type);
    return 1;
}

static void gather_subarray(const layout *of, double *to, const unsigned char *from)
{
    for (size_t i = 0; i < slabs(of); i++)
        for (size_t j = 0; j < INNER; j++, to += INNER)
            memcpy(to, from + place_of_inner(i, j, 0), INNER * sizeof *to);
}

static void spread_subarray(const layout *of, unsigned char *to, const double *from)
{
    for (size_t i = 0; i < slabs(of); i++)
        for (size_t j = 0; j < INNER; j++, from += INNER)
            memcpy(to + place_of_inner(i, j, 0), from, INNER * sizeof *from);
}

static const layout_kind kinds[] = {
    {"contiguous", extent_of_contiguous, place_in_contiguous, describe_contiguous,
     gather_contiguous, spread_contiguous},
    {"vector", extent_of_vector, place_in_vector, describe_vector, gather_vector, spread_vector},
    {"indexed", extent_of_indexed, place_in_indexed, describe_indexed, gather_indexed,
     spread_indexed},
    {"struct", extent_of_struct, place_in_struct, describe_struct, gather_struct, spread_struct},
    {"subarray", extent_of_subarray, place_in_subarray, describe_subarray, gather_subarray,
     spread_subarray},
};

static const layout_kind *find_kind(const char *name)
{
    size_t i = 0;
    while (strcmp(kinds[i].name, name) != 0)
        i++;
    return &kinds[i];
}

int make_layout(layout *made, const char *name, size_t bytes)
{
    *made = (layout){.kind = find_kind(name), .bytes = bytes};
    if (strcmp(name, "indexed") == 0 && draw_blocks(made))
        return -1;
    made->count = made->kind->describe(made, &made->type);
    MPI_Type_commit(&made->type);
    return 0;
}

void free_layout(layout *of)
{
    MPI_Type_free(&of->type);
    free(of->lengths);
    free(of->starts);
    free(of->before);
}
