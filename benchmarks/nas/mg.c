/* MG: Poisson's equation on a periodic cube by V cycles of a multigrid (RNR-94-007, section 2.5). */
#include <math.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "benchmark.h"
#include "cube.h"
#include "random_numbers.h"
#include "stencils.h"

enum { MOST_LEVELS = 11, CHARGES = 10 }; /* Class E has 2^11 points in a dimension. */

static const option options[] = {CLASS_OPTION, REPETITION_OPTION};
static const program_description program = {
    "nas_mg",
    "nas_mg: MG of the NAS Parallel Benchmarks, with NPB's summary lines.\n"
    "The number of ranks is a power of two, up to one for each 2 x 2 x 2 points.\n",
    "mpiexec -n 4 nas_mg --class A", options, sizeof options / sizeof options[0]};

/* Level 0 is the cube of 2 points in each dimension. */
typedef struct {
    const mg_reference *reference;
    rank_grid ranks;
    int top;
    cube cubes[MOST_LEVELS];
    double *u[MOST_LEVELS], *r[MOST_LEVELS], *v;
    double *lines;
    double *part, *room; /* Of a cube that is gathered. */
    double norm;         /* Of the residual in the end. */
} multigrid;

/* A point of the cube by its random number; `place` counts x fastest. */
typedef struct {
    double number;
    long long place;
} charge;

/* Put a point into a list of the CHARGES that are most in a direction, the last of them first. */
static void keep(charge *list, charge one, double direction)
{
    if (direction * one.number <= direction * list[0].number)
        return;
    int i = 0;
    for (; i + 1 < CHARGES && direction * one.number > direction * list[i + 1].number; i++)
        list[i] = list[i + 1];
    list[i] = one;
}

static void find_own_charges(const multigrid *m, charge lists[2][CHARGES])
{
    const cube *c = &m->cubes[m->top];
    const int *place = m->ranks.place;
    for (int high = 0; high < 2; high++)
        for (int i = 0; i < CHARGES; i++)
            lists[high][i] = (charge){high ? -1.0 : 2.0, -1};
    for (int z = 0; z < c->own[2]; z++)
        for (int y = 0; y < c->own[1]; y++) {
            const long long row = (long long)(place[2] * c->own[2] + z) * c->points +
                                  place[1] * c->own[1] + y;
            const long long first = row * c->points + place[0] * c->own[0];
            uint64_t x = random_after(RANDOM_SEED, (uint64_t)first);
            for (int i = 0; i < c->own[0]; i++) {
                const charge one = {uniform(x = next_random(x)), first + i};
                keep(lists[0], one, -1.0);
                keep(lists[1], one, 1.0);
            }
        }
}

static void place_charge(multigrid *m, long long place, double value)
{
    const cube *c = &m->cubes[m->top];
    size_t at = 0;
    const size_t steps[DIMENSIONS] = {1, c->row, c->plane};
    for (int d = 0; d < DIMENSIONS; d++, place /= c->points) {
        const long long own = place % c->points - (long long)m->ranks.place[d] * c->own[d];
        if (own < 0 || own >= c->own[d])
            return;
        at += (size_t)(own + 1) * steps[d];
    }
    m->v[at] = value;
}

/* The right side: +1 where the ten largest random numbers are, -1 where the ten smallest. */
static void make_charges(multigrid *m)
{
    charge mine[2][CHARGES];
    find_own_charges(m, mine);
    charge *all = reserve(&program, (size_t)m->ranks.ranks, sizeof mine);
    MPI_Allgather(mine, (int)sizeof mine, MPI_BYTE, all, (int)sizeof mine, MPI_BYTE,
                  MPI_COMM_WORLD);
    for (int high = 0; high < 2; high++) {
        charge list[CHARGES];
        memcpy(list, all + high * CHARGES, sizeof list);
        for (int rank = 1; rank < m->ranks.ranks; rank++)
            for (int i = 0; i < CHARGES; i++)
                keep(list, all[(2 * rank + high) * CHARGES + i], high ? 1.0 : -1.0);
        for (int i = 0; i < CHARGES; i++)
            place_charge(m, list[i].place, high ? 1.0 : -1.0);
    }
    free(all);
    exchange_border(&m->ranks, &m->cubes[m->top], m->v);
}

/* The residual of a level onto the next coarser one. */
static void go_down(multigrid *m, int level)
{
    const cube *fine = &m->cubes[level], *coarse = &m->cubes[level - 1];
    const int whole = fine->divided && !coarse->divided;
    const int own[DIMENSIONS] = {fine->own[0] / 2, fine->own[1] / 2, fine->own[2] / 2};
    for (int z = 1; z <= own[2]; z++)
        for (int y = 1; y <= own[1]; y++) {
            double *row = whole ? m->part + ((z - 1) * own[1] + y - 1) * own[0]
                                : m->r[level - 1] + (size_t)z * coarse->plane +
                                      (size_t)y * coarse->row + 1;
            restrict_row(fine, m->r[level], own[0], y, z, row, m->lines);
        }
    if (whole)
        gather_cube(&m->ranks, coarse, m->part, m->room, m->r[level - 1]);
    exchange_border(&m->ranks, coarse, m->r[level - 1]);
}

static void go_up(multigrid *m, int level)
{
    const cube *fine = &m->cubes[level], *coarse = &m->cubes[level - 1];
    const int whole = fine->divided && !coarse->divided;
    int first[DIMENSIONS];
    for (int d = 0; d < DIMENSIONS; d++)
        first[d] = whole ? m->ranks.place[d] * fine->own[d] / 2 : 0;
    interpolate(fine, m->u[level], coarse, first, m->u[level - 1], m->lines);
}

static void take_residual(multigrid *m, int level, const double *right)
{
    subtract_operator(&m->cubes[level], m->u[level], right, m->r[level], m->lines);
    exchange_border(&m->ranks, &m->cubes[level], m->r[level]);
}

static void smooth_level(multigrid *m, int level)
{
    smooth(&m->cubes[level], m->reference->smoother, m->r[level], m->u[level], m->lines);
    exchange_border(&m->ranks, &m->cubes[level], m->u[level]);
}

static void cycle(multigrid *m)
{
    for (int level = m->top; level > 0; level--)
        go_down(m, level);
    for (int level = 0; level <= m->top; level++) {
        if (level < m->top)
            memset(m->u[level], 0, m->cubes[level].all * sizeof(double));
        if (level > 0) {
            go_up(m, level);
            take_residual(m, level, level < m->top ? m->r[level] : m->v);
        }
        smooth_level(m, level);
    }
    take_residual(m, m->top, m->v);
}

static void begin_with_zero(multigrid *m)
{
    memset(m->u[m->top], 0, m->cubes[m->top].all * sizeof(double));
    take_residual(m, m->top, m->v);
}

static double residual_norm(const multigrid *m)
{
    const cube *c = &m->cubes[m->top];
    double mine = 0.0, all = 0.0;
    for (int z = 1; z <= c->own[2]; z++)
        for (int y = 1; y <= c->own[1]; y++) {
            const double *row = m->r[m->top] + (size_t)z * c->plane + (size_t)y * c->row;
            double sum = 0.0;
            for (int x = 1; x <= c->own[0]; x++)
                sum += row[x] * row[x];
            mine += sum;
        }
    MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return sqrt(all / c->points / c->points / c->points);
}

static void set_up(multigrid *m)
{
    const int points = m->reference->points;
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    complaint about;
    complain(&about, "%d ranks: must be a power of two, and class %s has %d points in a dimension",
             ranks, chosen_class, points);
    if (ranks & (ranks - 1) || divide_cube(&m->ranks, points, rank, ranks))
        leave_together(program.name, about.text, EXIT_USAGE);
    for (int n = points; n > 2; n /= 2)
        m->top++;
    if (m->top >= MOST_LEVELS) {
        complain(&about, "class %s has %d points in a dimension: at most %d levels of grids fit",
                 chosen_class, points, MOST_LEVELS);
        leave_together(program.name, about.text, EXIT_USAGE);
    }
    refuse_too_much(&program, demand_of_cubes(&m->ranks, points));
    reserve_faces(&program, &m->ranks, points);
    for (int level = 0; level <= m->top; level++) {
        cube *c = &m->cubes[level];
        *c = make_cube(&m->ranks, 2 << level, level == m->top);
        m->u[level] = reserve(&program, c->all, sizeof(double));
        m->r[level] = reserve(&program, c->all, sizeof(double));
        if (level > 0 && c->divided && !m->cubes[level - 1].divided) {
            const size_t all = m->cubes[level - 1].all;
            m->part = reserve(&program, all, sizeof(double));
            m->room = reserve(&program, all, sizeof(double));
        }
    }
    m->v = reserve(&program, m->cubes[m->top].all, sizeof(double));
    m->lines = reserve(&program, 2 * ((size_t)points + 2), sizeof(double));
}

static void tear_down(multigrid *m)
{
    for (int level = 0; level <= m->top; level++) {
        free(m->u[level]);
        free(m->r[level]);
    }
    free(m->v);
    free(m->lines);
    free(m->part);
    free(m->room);
    free_ranks(&m->ranks);
}

static void solve(void *solver)
{
    multigrid *m = solver;
    begin_with_zero(m);
    for (int i = 0; i < m->reference->iterations; i++)
        cycle(m);
    m->norm = residual_norm(m);
}

static void verify(void *solver, verification *v)
{
    const multigrid *m = solver;
    if (m->ranks.rank == 0)
        verify_real(v, "the residual's norm", m->norm, m->reference->residual, mg_tolerance);
}

int main(int argc, char **argv)
{
    begin_benchmark(&program, "MG", &argc, &argv);
    static multigrid m;
    m.reference = &mg_references[class_index()];
    set_up(&m);
    make_charges(&m);
    begin_with_zero(&m);
    cycle(&m); /* Untimed. */
    const timed_part part = {.section = solve, .verify = verify};
    section_times times;
    verification verified = {0};
    time_section(&part, &m, &times, &verified);
    const long long n = m.reference->points;
    const run_summary summary = {.benchmark = "MG", .size = {n, n, n},
                                 .iterations = m.reference->iterations,
                                 .operations = 58.0 * m.reference->iterations * (double)(n * n * n),
                                 .operation_type = "floating point"};
    tear_down(&m);
    end_benchmark(&program, &summary, &times, &verified);
}
