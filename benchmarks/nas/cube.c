#include "cube.h"

#include <stdlib.h>
#include <string.h>

/* With fewer points in a dimension it takes longer to exchange a border than to do all alone. */
enum { FEWEST_POINTS = 4 };

static int rank_at(const rank_grid *g, const int place[DIMENSIONS])
{
    return (place[2] * g->parts[1] + place[1]) * g->parts[0] + place[0];
}

int divide_cube(rank_grid *g, int points, int rank, int ranks)
{
    g->rank = rank;
    g->ranks = ranks;
    int left = g->ranks;
    for (int d = 0; d < DIMENSIONS; d++)
        g->parts[d] = 1;
    /* z first and x last, whose points are next to each other. */
    for (int d = DIMENSIONS - 1; left > 1; d = (d + DIMENSIONS - 1) % DIMENSIONS, left /= 2)
        g->parts[d] *= 2;
    int rest = g->rank;
    for (int d = 0; d < DIMENSIONS; d++) {
        g->place[d] = rest % g->parts[d];
        rest /= g->parts[d];
    }
    for (int d = 0; d < DIMENSIONS; d++) {
        if (points / g->parts[d] < 2)
            return -1;
        for (int high = 0; high < 2; high++) {
            int there[DIMENSIONS];
            memcpy(there, g->place, sizeof there);
            there[d] = (there[d] + (high ? 1 : g->parts[d] - 1)) % g->parts[d];
            g->neighbour[d][high] = rank_at(g, there);
        }
    }
    return 0;
}

static size_t largest_face(const rank_grid *g, int points)
{
    size_t largest = 1;
    for (int d = 0; d < DIMENSIONS; d++) {
        size_t face = 1;
        for (int e = 0; e < DIMENSIONS; e++)
            face *= e == d ? 1 : (size_t)(points / g->parts[e] + 2);
        largest = face > largest ? face : largest;
    }
    return largest;
}

void reserve_faces(const program_description *program, rank_grid *g, int points)
{
    const size_t largest = largest_face(g, points);
    for (int high = 0; high < 2; high++) {
        g->sent[high] = reserve(program, largest, sizeof(double));
        g->received[high] = reserve(program, largest, sizeof(double));
    }
}

void free_ranks(rank_grid *g)
{
    for (int high = 0; high < 2; high++) {
        free(g->sent[high]);
        free(g->received[high]);
    }
}

cube make_cube(const rank_grid *g, int points, int finest)
{
    cube c = {.points = points, .divided = g->ranks > 1};
    for (int d = 0; d < DIMENSIONS; d++)
        if (points / g->parts[d] < FEWEST_POINTS && !finest)
            c.divided = 0;
    for (int d = 0; d < DIMENSIONS; d++)
        c.own[d] = c.divided ? points / g->parts[d] : points;
    c.row = (size_t)c.own[0] + 2;
    c.plane = c.row * ((size_t)c.own[1] + 2);
    c.all = c.plane * ((size_t)c.own[2] + 2);
    return c;
}

/* The points of a face of a dimension: with the border of the dimensions that were exchanged before,
 * without that of those that follow. */
typedef struct {
    size_t start, steps[2]; /* From the face of coordinate 0; elements between two points. */
    int counts[2];
} face;

static face face_of(const cube *c, int dimension)
{
    const size_t steps[DIMENSIONS] = {1, c->row, c->plane};
    face f = {.start = 0};
    for (int d = 0, i = 0; d < DIMENSIONS; d++) {
        if (d == dimension)
            continue;
        const int before = d < dimension;
        f.start += before ? 0 : steps[d];
        f.steps[i] = steps[d];
        f.counts[i++] = c->own[d] + (before ? 2 : 0);
    }
    return f;
}

static void copy_face(const face *f, double *values, size_t to, size_t from)
{
    for (int j = 0; j < f->counts[1]; j++)
        for (int i = 0; i < f->counts[0]; i++) {
            const size_t at = f->start + (size_t)j * f->steps[1] + (size_t)i * f->steps[0];
            values[to + at] = values[from + at];
        }
}

static void pack(const face *f, const double *values, size_t from, double *packed)
{
    for (int j = 0; j < f->counts[1]; j++)
        for (int i = 0; i < f->counts[0]; i++)
            *packed++ = values[from + f->start + (size_t)j * f->steps[1] + (size_t)i * f->steps[0]];
}

static void unpack(const face *f, double *values, size_t to, const double *packed)
{
    for (int j = 0; j < f->counts[1]; j++)
        for (int i = 0; i < f->counts[0]; i++)
            values[to + f->start + (size_t)j * f->steps[1] + (size_t)i * f->steps[0]] = *packed++;
}

void exchange_border(const rank_grid *g, const cube *c, double *values)
{
    const size_t steps[DIMENSIONS] = {1, c->row, c->plane};
    for (int d = 0; d < DIMENSIONS; d++) {
        const face f = face_of(c, d);
        const size_t step = steps[d], last = (size_t)c->own[d] * step;
        if (!c->divided || g->parts[d] == 1) {
            copy_face(&f, values, 0, last);
            copy_face(&f, values, last + step, step);
            continue;
        }
        const int count = f.counts[0] * f.counts[1];
        MPI_Request requests[4];
        /* A message has its direction as its tag: both neighbours can be the same rank. */
        for (int high = 0; high < 2; high++)
            MPI_Irecv(g->received[high], count, MPI_DOUBLE, g->neighbour[d][high], !high,
                      MPI_COMM_WORLD, &requests[high]);
        for (int high = 0; high < 2; high++) {
            pack(&f, values, high ? last : step, g->sent[high]);
            MPI_Isend(g->sent[high], count, MPI_DOUBLE, g->neighbour[d][high], high,
                      MPI_COMM_WORLD, &requests[2 + high]);
        }
        MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
        unpack(&f, values, 0, g->received[0]);
        unpack(&f, values, last + step, g->received[1]);
    }
}

void gather_cube(const rank_grid *g, const cube *whole, double *part, double *room, double *values)
{
    int own[DIMENSIONS], place[DIMENSIONS], count = 1;
    for (int d = 0; d < DIMENSIONS; d++)
        count *= own[d] = whole->points / g->parts[d];
    MPI_Allgather(part, count, MPI_DOUBLE, room, count, MPI_DOUBLE, MPI_COMM_WORLD);
    const double *from = room;
    for (place[2] = 0; place[2] < g->parts[2]; place[2]++)
        for (place[1] = 0; place[1] < g->parts[1]; place[1]++)
            for (place[0] = 0; place[0] < g->parts[0]; place[0]++)
                for (int z = 0; z < own[2]; z++)
                    for (int y = 0; y < own[1]; y++, from += own[0])
                        memcpy(values + (size_t)(place[2] * own[2] + z + 1) * whole->plane +
                                   (size_t)(place[1] * own[1] + y + 1) * whole->row +
                                   (size_t)(place[0] * own[0] + 1),
                               from, (size_t)own[0] * sizeof *from);
}

demand demand_of_cubes(const rank_grid *g, int points)
{
    double numbers = (double)make_cube(g, points, 1).all;
    for (int n = points; n >= 2; n /= 2)
        numbers += 2.0 * (double)make_cube(g, n, n == points).all;
    return (demand){numbers * sizeof(double), (double)largest_face(g, points)};
}
