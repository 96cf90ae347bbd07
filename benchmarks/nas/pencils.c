#include "pencils.h"

#include <stdlib.h>
#include <string.h>

static extent part_of(int points, int parts, int which)
{
    return (extent){(int)first_of_part(points, parts, which),
                    (int)first_of_part(points, parts, which + 1)};
}

static int length(extent e)
{
    return e.end - e.first;
}

extent part_across(const pencils *p, int dimension)
{
    return part_of(p->points[dimension], p->across, p->place_across);
}

extent part_along(const pencils *p, int dimension)
{
    return part_of(p->points[dimension], p->along, p->place_along);
}

static int smaller(int one, int other)
{
    return one < other ? one : other;
}

int divide_pencils(pencils *p, const int points[3], int rank, int ranks)
{
    memcpy(p->points, points, sizeof p->points);
    const int most_across = smaller(points[0], points[1]);
    const int most_along = smaller(points[1], points[2]);
    p->across = 1;
    while (p->across <= most_across && (ranks % p->across || ranks / p->across > most_along))
        p->across++;
    if (p->across > most_across)
        return -1;
    p->along = ranks / p->across;
    p->place_across = rank % p->across;
    p->place_along = rank / p->across;
    return 0;
}

demand demand_of_pencils(const pencils *p)
{
    const double doubles = 2.0 * (double)most_numbers(p);
    return (demand){4.0 * doubles * sizeof(double), p->across * p->along > 1 ? doubles : 0.0};
}

void lay_out_pencils(const program_description *program, pencils *p)
{
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_split(MPI_COMM_WORLD, p->place_along, rank, &p->ranks_across);
    MPI_Comm_split(MPI_COMM_WORLD, p->place_across, rank, &p->ranks_along);
    p->packed = reserve(program, 2 * most_numbers(p), sizeof *p->packed);
    p->counts = reserve(program, 4 * (size_t)(p->across * p->along), sizeof *p->counts);
}

void free_pencils(pencils *p)
{
    free(p->packed);
    free(p->counts);
    MPI_Comm_free(&p->ranks_across);
    MPI_Comm_free(&p->ranks_along);
}

size_t most_numbers(const pencils *p)
{
    const extent x = part_across(p, 0), y = part_across(p, 1), y_along = part_along(p, 1),
                 z = part_along(p, 2);
    const size_t of_x = (size_t)p->points[0] * (size_t)length(y) * (size_t)length(z);
    const size_t of_y = (size_t)length(x) * (size_t)p->points[1] * (size_t)length(z);
    const size_t of_z = (size_t)length(x) * (size_t)length(y_along) * (size_t)p->points[2];
    const size_t most = of_x > of_y ? of_x : of_y;
    return most > of_z ? most : of_z;
}

/* A part of a box of numbers: its extents, and the row and plane of the box that it is in. */
typedef struct {
    extent x, y, z;
    size_t row, plane;
} part;

static int doubles_in(const part *b)
{
    return 2 * length(b->x) * length(b->y) * length(b->z);
}

/* Copy a part out of its box, or into it; return where the packed numbers end. */
static double *copy_part(const part *b, double *box, double *packed, int into)
{
    const size_t count = 2 * (size_t)length(b->x);
    for (int z = b->z.first; z < b->z.end; z++)
        for (int y = b->y.first; y < b->y.end; y++, packed += count) {
            double *row = box + 2 * ((size_t)z * b->plane + (size_t)y * b->row +
                                     (size_t)b->x.first);
            memcpy(into ? row : packed, into ? packed : row, count * sizeof *packed);
        }
    return packed;
}

/* What one rank gives to another, or gets from it: a part of what it has. */
typedef part (*part_for)(const pencils *p, int other);

static part part_of_x(const pencils *p, int other)
{
    const extent y = part_across(p, 1), z = part_along(p, 2);
    const size_t row = (size_t)p->points[0];
    return (part){part_of(p->points[0], p->across, other), {0, length(y)}, {0, length(z)}, row,
                  row * (size_t)length(y)};
}

static part part_of_y(const pencils *p, int other)
{
    const extent x = part_across(p, 0), z = part_along(p, 2);
    const size_t row = (size_t)length(x);
    return (part){{0, length(x)}, part_of(p->points[1], p->across, other), {0, length(z)}, row,
                  row * (size_t)p->points[1]};
}

static part part_of_y_along(const pencils *p, int other)
{
    part b = part_of_y(p, 0);
    b.y = part_of(p->points[1], p->along, other);
    return b;
}

static part part_of_z(const pencils *p, int other)
{
    const extent x = part_across(p, 0), y = part_along(p, 1);
    const size_t row = (size_t)length(x);
    return (part){{0, length(x)}, {0, length(y)}, part_of(p->points[2], p->along, other), row,
                  row * (size_t)length(y)};
}

/* Exchange the parts between the ranks of `comm`. Parts of z are next to each other as they are, so
 * they are sent, and received, without being packed. */
static void exchange(const pencils *p, MPI_Comm comm, double *from, part_for sent, double *to,
                     part_for received)
{
    int ranks;
    MPI_Comm_size(comm, &ranks);
    int *send_counts = p->counts, *send_starts = send_counts + ranks;
    int *receive_counts = send_starts + ranks, *receive_starts = receive_counts + ranks;
    double *next = p->packed;
    for (int other = 0, out = 0, in = 0; other < ranks; other++) {
        const part give = sent(p, other), get = received(p, other);
        send_starts[other] = out;
        receive_starts[other] = in;
        out += send_counts[other] = doubles_in(&give);
        in += receive_counts[other] = doubles_in(&get);
        if (sent != part_of_z)
            next = copy_part(&give, from, next, 0);
    }
    double *given = sent == part_of_z ? from : p->packed;
    /* Where both are packed, what was given goes back to where it came from, which is not needed. */
    double *got = received == part_of_z ? to : given == from ? p->packed : from;
    MPI_Alltoallv(given, send_counts, send_starts, MPI_DOUBLE, got, receive_counts, receive_starts,
                  MPI_DOUBLE, comm);
    for (int other = 0; got != to && other < ranks; other++) {
        const part get = received(p, other);
        got = copy_part(&get, to, got, 1);
    }
}

void x_to_y(const pencils *p, double *from, double *to)
{
    exchange(p, p->ranks_across, from, part_of_x, to, part_of_y);
}

void y_to_x(const pencils *p, double *from, double *to)
{
    exchange(p, p->ranks_across, from, part_of_y, to, part_of_x);
}

void y_to_z(const pencils *p, double *from, double *to)
{
    exchange(p, p->ranks_along, from, part_of_y_along, to, part_of_z);
}

void z_to_y(const pencils *p, double *from, double *to)
{
    exchange(p, p->ranks_along, from, part_of_z, to, part_of_y_along);
}
