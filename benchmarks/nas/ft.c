/* FT: a heat equation solved by three-dimensional Fourier transforms (RNR-94-007, section 2.5). Its
 * messages are transpositions, each an exchange between all ranks. */
#include <math.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "benchmark.h"
#include "for_this_processor.h"
#include "fourier.h"
#include "pencils.h"
#include "random_numbers.h"

enum { CHECKED_POINTS = 1024 };
#define DIFFUSION 1e-6 /* The specification's alpha. */
#define PI 3.14159265358979323846

static const option options[] = {CLASS_OPTION, REPETITION_OPTION};
static const program_description program = {
    "nas_ft",
    "nas_ft: FT of the NAS Parallel Benchmarks, with NPB's summary lines.\n"
    "Any number of ranks that divides the box into slabs of z, or else into pencils.\n",
    "mpiexec -n 4 nas_ft --class A", options, sizeof options / sizeof options[0]};

typedef struct {
    const ft_reference *reference;
    pencils box;
    fourier transforms[3];
    double *spectrum; /* With whole lines of z; evolves. */
    double *field, *other;
    double *decay[3]; /* Of one step, for each wave number of a dimension. */
    double checksums[FT_MOST_ITERATIONS][2];
    int rank;
} heat;

static int points_of(extent e)
{
    return e.end - e.first;
}

/* The initial field: random complex numbers, x fastest, with whole lines of x. */
static void draw_field(const heat *h, double *field)
{
    const int *n = h->box.points;
    const extent y = part_across(&h->box, 1), z = part_along(&h->box, 2);
    for (int k = z.first; k < z.end; k++)
        for (int j = y.first; j < y.end; j++) {
            const uint64_t before = 2 * (uint64_t)n[0] * ((uint64_t)k * (uint64_t)n[1] +
                                                          (uint64_t)j);
            uint64_t x = random_after(RANDOM_SEED, before);
            for (int i = 0; i < 2 * n[0]; i++)
                *field++ = uniform(x = next_random(x));
        }
}

/* exp(-4 alpha pi^2 k^2) of a step; wave numbers of the upper half are negative. */
static void make_decay(heat *h)
{
    for (int d = 0; d < 3; d++)
        for (int i = 0; i < h->box.points[d]; i++) {
            const int n = h->box.points[d], k = i >= n / 2 ? i - n : i;
            h->decay[d][i] = exp(-4.0 * DIFFUSION * PI * PI * k * k);
        }
}

FOR_THIS_PROCESSOR
static void evolve_row(double *restrict spectrum, double *restrict evolved, int count,
                       const double *restrict decay, double rest)
{
    for (int i = 0; i < count; i++) {
        const double factor = decay[i] * rest;
        evolved[2 * i] = spectrum[2 * i] *= factor;
        evolved[2 * i + 1] = spectrum[2 * i + 1] *= factor;
    }
}

/* One step in time. */
static void evolve(heat *h, double *evolved)
{
    const extent x = part_across(&h->box, 0), y = part_along(&h->box, 1);
    const int count = points_of(x);
    double *spectrum = h->spectrum;
    for (int k = 0; k < h->box.points[2]; k++)
        for (int j = y.first; j < y.end; j++) {
            evolve_row(spectrum, evolved, count, h->decay[0] + x.first,
                       h->decay[1][j] * h->decay[2][k]);
            spectrum += 2 * count;
            evolved += 2 * count;
        }
}

/* Transform every line of a dimension; `rows` times `planes` is what else the rank has: for y and z
 * the numbers next to each other, and how many planes of lines. */
static void transform_x(const heat *h, double *field, int sign)
{
    const int rows = points_of(part_across(&h->box, 1)) * points_of(part_along(&h->box, 2));
    transform_lines(&h->transforms[0], field, rows, (size_t)h->box.points[0], 1, sign);
}

static void transform_y(const heat *h, double *field, int sign)
{
    const int own_x = points_of(part_across(&h->box, 0));
    const size_t plane = 2 * (size_t)own_x * (size_t)h->box.points[1];
    for (int z = 0; z < points_of(part_along(&h->box, 2)); z++)
        transform_lines(&h->transforms[1], field + (size_t)z * plane, own_x, 1, (size_t)own_x,
                        sign);
}

static void transform_z(const heat *h, double *field, int sign)
{
    const int plane =
        points_of(part_across(&h->box, 0)) * points_of(part_along(&h->box, 1));
    transform_lines(&h->transforms[2], field, plane, 1, (size_t)plane, sign);
}

static void exchange_fields(double **one, double **other)
{
    double *kept = *one;
    *one = *other;
    *other = kept;
}

/* From the field with lines of x to the spectrum with lines of z. */
static void transform_forward(heat *h)
{
    transform_x(h, h->field, -1);
    if (h->box.across > 1) {
        x_to_y(&h->box, h->field, h->other);
        exchange_fields(&h->field, &h->other);
    }
    transform_y(h, h->field, -1);
    if (h->box.along > 1) {
        y_to_z(&h->box, h->field, h->spectrum);
    } else {
        exchange_fields(&h->field, &h->spectrum);
    }
    transform_z(h, h->spectrum, -1);
}

static void transform_back(heat *h)
{
    transform_z(h, h->field, 1);
    if (h->box.along > 1) {
        z_to_y(&h->box, h->field, h->other);
        exchange_fields(&h->field, &h->other);
    }
    transform_y(h, h->field, 1);
    if (h->box.across > 1) {
        y_to_x(&h->box, h->field, h->other);
        exchange_fields(&h->field, &h->other);
    }
    transform_x(h, h->field, 1);
}

/* The sum of some points of the field, divided by all of them; on every rank. */
static void take_checksum(const heat *h, double checksum[2])
{
    const int *n = h->box.points;
    const extent y = part_across(&h->box, 1), z = part_along(&h->box, 2);
    const double all = (double)n[0] * n[1] * n[2];
    double mine[2] = {0.0, 0.0};
    for (int i = 1; i <= CHECKED_POINTS; i++) {
        const int at_x = i % n[0], at_y = 3 * i % n[1], at_z = 5 * i % n[2];
        if (at_y < y.first || at_y >= y.end || at_z < z.first || at_z >= z.end)
            continue;
        const size_t row = (size_t)(at_z - z.first) * (size_t)points_of(y) +
                           (size_t)(at_y - y.first);
        const double *point = h->field + 2 * (row * (size_t)n[0] + (size_t)at_x);
        mine[0] += point[0] / all;
        mine[1] += point[1] / all;
    }
    MPI_Allreduce(mine, checksum, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void begin_field(heat *h)
{
    make_decay(h);
    draw_field(h, h->field);
    transform_forward(h);
}

static void set_up(heat *h)
{
    const int *n = h->reference->points;
    int ranks;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (divide_pencils(&h->box, n, h->rank, ranks)) {
        complaint about;
        complain(&about, "%d ranks: the %d x %d x %d points of class %s cannot be divided so",
                 ranks, n[0], n[1], n[2], chosen_class);
        leave_together(program.name, about.text, EXIT_USAGE);
    }
    refuse_too_much(&program, demand_of_pencils(&h->box));
    lay_out_pencils(&program, &h->box);
    const size_t most = 2 * most_numbers(&h->box);
    h->spectrum = reserve(&program, most, sizeof(double));
    h->field = reserve(&program, most, sizeof(double));
    h->other = reserve(&program, most, sizeof(double));
    for (int d = 0; d < 3; d++) {
        h->transforms[d] = make_fourier(&program, n[d]);
        h->decay[d] = reserve(&program, (size_t)n[d], sizeof(double));
    }
}

static void tear_down(heat *h)
{
    free(h->spectrum);
    free(h->field);
    free(h->other);
    for (int d = 0; d < 3; d++) {
        free_fourier(&h->transforms[d]);
        free(h->decay[d]);
    }
    free_pencils(&h->box);
}

static void solve(void *solver)
{
    heat *h = solver;
    begin_field(h);
    for (int i = 0; i < h->reference->iterations; i++) {
        evolve(h, h->field);
        transform_back(h);
        take_checksum(h, h->checksums[i]);
    }
}

static void verify(void *solver, verification *v)
{
    const heat *h = solver;
    for (int i = 0; h->rank == 0 && i < h->reference->iterations; i++) {
        char what[32];
        snprintf(what, sizeof what, "checksum %d", i + 1);
        verify_complex(v, what, h->checksums[i], h->reference->checksum[i], ft_tolerance);
    }
}

int main(int argc, char **argv)
{
    begin_benchmark(&program, "FT", &argc, &argv);
    static heat h;
    h.reference = &ft_references[class_index()];
    const int *n = h.reference->points, iterations = h.reference->iterations;
    MPI_Comm_rank(MPI_COMM_WORLD, &h.rank);
    set_up(&h);
    begin_field(&h); /* Untimed. */
    const timed_part part = {.section = solve, .verify = verify};
    section_times times;
    verification verified = {0};
    time_section(&part, &h, &times, &verified);
    for (int i = 0; h.rank == 0 && i < iterations; i++)
        printf(" %5d  checksum %.12e %.12e\n", i + 1, h.checksums[i][0], h.checksums[i][1]);
    const double points = (double)n[0] * n[1] * n[2], l = log(points);
    const run_summary summary = {.benchmark = "FT", .size = {n[0], n[1], n[2]},
                                 .iterations = iterations,
                                 .operations = points * (14.8157 + 7.19641 * l +
                                                         (5.23518 + 7.21113 * l) * iterations),
                                 .operation_type = "floating point"};
    tear_down(&h);
    end_benchmark(&program, &summary, &times, &verified);
}
