/* linpack: dense linear systems as in the table of the LINPACK benchmark (Dongarra), which ORNL
 * 1996, Table 3.1, shows: of order 100 by columns, of order 1000 by the best that there is. */
#include <float.h>
#include <math.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../common/clock.h"
#include "../common/leaving.h"
#include "../common/record_pieces.h"
#include "column_solver.h"
#include "fortran_blas.h"
#include "matrix.h"
#include "rate_measurement.h"

#define LARGEST_N 100000
/* HPL's limit for a residual of its own kind; sound ones are about 1. */
#define LARGEST_RESIDUAL 16.0
/* One timing has at least so many operations, which take some ten microseconds: thousands of a clock's
 * steps. How many systems these are follows from the order alone: they lie in memory at once, so were
 * it from a library's clock, libraries would be compared on different working sets. */
#define LEAST_FLOP_OF_A_TIMING 5e5
#define MOST_REPETITIONS 10000

static sampling plan;
static long long n;
static choice_list methods;

static const char *const method_names[] = {"columns", "lapack", NULL};

static const option options[] = {
    {.name = "method", .kind = OPTION_CHOICES, .value = &methods, .initial = "all",
     .names = method_names,
     .help = "columns: unblocked, compiled here, like LINPACK's dgefa and dgesl; lapack: dgesv of"
             " the image's library"},
    {.name = "n", .kind = OPTION_NUMBER, .value = &n, .initial = "0", .least = 0,
     .most = LARGEST_N, .help = "order; 0: 100 by columns, 1000 by LAPACK"},
    RATE_OPTIONS(plan, "20"),
};

static const program_description program = {
    "linpack",
    "linpack: dense linear systems on every rank at once, in wyeast-records-2\n"
    "(benchmarks/FORMAT.md).\n",
    "mpiexec -n 1 linpack --method columns --n 100",
    options, sizeof options / sizeof options[0]};

/* As many equal systems as one timing solves. */
typedef struct {
    size_t order, systems;
    int by_columns;
    double *original, *right;     /* The matrix, and the right side whose solution is all 1. */
    double *matrices, *solutions; /* Of each system. */
    size_t *pivots;
    int *lapack_pivots;
    int singular;
} solver;

/* The row sums are the right side, as in LINPACK's own program. */
static void make_system(solver *s)
{
    fill_uniform(s->original, s->order * s->order, 1325);
    memset(s->right, 0, s->order * sizeof *s->right);
    for (size_t j = 0; j < s->order; j++)
        for (size_t i = 0; i < s->order; i++)
            s->right[i] += s->original[i + j * s->order];
}

static void load(void *context)
{
    solver *s = context;
    const size_t entries = s->order * s->order;
    for (size_t k = 0; k < s->systems; k++) {
        memcpy(s->matrices + k * entries, s->original, entries * sizeof *s->original);
        memcpy(s->solutions + k * s->order, s->right, s->order * sizeof *s->right);
    }
}

static void solve_one(solver *s, double *matrix, double *solution)
{
    if (s->by_columns) {
        s->singular |= factor_by_columns(matrix, s->order, s->pivots) != 0;
        solve_by_columns(matrix, s->order, s->pivots, solution);
        return;
    }
    const int order = (int)s->order, one = 1;
    int info = 0;
    dgesv_(&order, &one, matrix, &order, s->lapack_pivots, solution, &order, &info);
    s->singular |= info != 0;
}

static void solve(void *context)
{
    solver *s = context;
    for (size_t k = 0; k < s->systems; k++)
        solve_one(s, s->matrices + k * s->order * s->order, s->solutions + k * s->order);
}

/* LINPACK's normalised residual: the largest entry of A x - b by that of A, that of x, n and the
 * machine's precision; infinite where the solution is no number. */
static double residual(const solver *s, const double *solution, double *work)
{
    double largest = 0.0, of_matrix = 0.0, of_solution = 0.0;
    for (size_t i = 0; i < s->order; i++)
        work[i] = -s->right[i];
    for (size_t j = 0; j < s->order; j++) {
        of_solution = fmax(of_solution, fabs(solution[j]));
        for (size_t i = 0; i < s->order; i++) {
            work[i] += s->original[i + j * s->order] * solution[j];
            of_matrix = fmax(of_matrix, fabs(s->original[i + j * s->order]));
        }
    }
    for (size_t i = 0; i < s->order; i++) {
        if (!isfinite(work[i]))
            return INFINITY;
        largest = fmax(largest, fabs(work[i]));
    }
    return largest / ((double)s->order * of_matrix * of_solution * DBL_EPSILON);
}

/* Of the first `systems`: where a rank's answer is wrong the program ends with a sentence. Returns
 * the largest residual on rank 0. */
static double check(const char *method, const solver *s, size_t systems, double *work)
{
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    complaint about;
    double own = 0.0;
    for (size_t k = 0; k < systems; k++)
        own = fmax(own, residual(s, s->solutions + k * s->order, work));
    double all = own;
    const int wrong = s->singular || !(own < LARGEST_RESIDUAL);
    if (s->singular)
        complain(&about, "rank %d, %s, N=%zu: a pivot is 0, yet the matrix is not singular", rank,
                 method, s->order);
    else if (wrong)
        complain(&about, "rank %d, %s, N=%zu: the residual max|Ax-b| / (N max|A| max|x| eps), as "
                         "the LINPACK benchmark has it, is %.6g and must be below %g: the answer "
                         "is wrong", rank, method, s->order, own, LARGEST_RESIDUAL);
    refuse_together(&program, wrong, &about);
    MPI_Reduce(&own, &all, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    return all;
}

/* LINPACK's count of a system's operations. */
static double flop_of(size_t order)
{
    const double n = (double)order;
    return 2.0 / 3.0 * n * n * n + 2.0 * n * n;
}

static void *indices_or_leave(size_t count, size_t size)
{
    complaint about;
    void *found = calloc(count, size);
    if (!found)
        complain(&about, "no memory for %zu pivots", count);
    refuse_together(&program, !found, &about);
    return found;
}

static void reserve_systems(solver *s)
{
    s->matrices = numbers_or_leave(&program, s->systems * s->order * s->order);
    s->solutions = numbers_or_leave(&program, s->systems * s->order);
}

static void measure(const char *method)
{
    solver s = {.by_columns = strcmp(method, "columns") == 0};
    s.order = n ? (size_t)n : s.by_columns ? 100 : 1000;
    s.systems = (size_t)fmin(MOST_REPETITIONS, ceil(LEAST_FLOP_OF_A_TIMING / flop_of(s.order)));
    s.original = numbers_or_leave(&program, s.order * s.order);
    s.right = numbers_or_leave(&program, s.order);
    double *work = numbers_or_leave(&program, s.order);
    s.pivots = indices_or_leave(s.order, sizeof *s.pivots);
    s.lapack_pivots = indices_or_leave(s.order, sizeof *s.lapack_pivots);
    reserve_systems(&s);
    make_system(&s);
    load(&s);
    solve_one(&s, s.matrices, s.solutions);
    const double largest = check(method, &s, 1, work);
    char keys[200];
    snprintf(keys, sizeof keys,
             "\"operation\":\"linpack\",\"method\":\"%s\",\"n\":%zu,\"flop\":%.17g,"
             "\"repetitions\":%zu,\"residual\":%.9e",
             method, s.order, flop_of(s.order), s.systems, largest);
    const rate_work work_of_systems = {
        {.run = solve, .before = load, .context = &s}, (long long)s.systems, keys};
    measure_rate(&program, &plan, &work_of_systems);
    /* What was timed must be right too: the last iteration's solutions, and every iteration's
     * pivots. */
    check(method, &s, s.systems, work);
    free(s.original);
    free(s.right);
    free(s.matrices);
    free(s.solutions);
    free(s.pivots);
    free(s.lapack_pivots);
    free(work);
}

int main(int argc, char **argv)
{
    begin_program(&program, &argc, &argv);
    begin_output(&program);
    for (size_t i = 0; i < methods.count; i++)
        measure(methods.names[i]);
    const size_t results = methods.count;
    end_program(&program, results);
}
