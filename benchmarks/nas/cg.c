/* CG: the largest eigenvalue of a sparse matrix by inverse iteration, each step of which solves a
 * system by conjugate gradients (RNR-94-007, section 2.4). */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "benchmark.h"
#include "sparse_matrix.h"

enum { STEPS_OF_A_SOLUTION = 25, MOVE_TAG = 1, SUM_TAG = 2 };
#define SMALLEST_EIGENVALUE 0.1 /* rcond */

static const option options[] = {CLASS_OPTION, REPETITION_OPTION};
static const program_description program = {
    "nas_cg",
    "nas_cg: CG of the NAS Parallel Benchmarks, with NPB's summary lines.\n"
    "Any number of ranks, up to one for each row; they form a grid, and each has a block of the\n"
    "matrix.\n",
    "mpiexec -n 4 nas_cg --class A", options, sizeof options / sizeof options[0]};

/* Ranks are a grid of `rows` times `columns`; a vector is in as many pieces as there are ranks, in
 * their order. Rank (i, j) multiplies the pieces of its column of the matrix, j * rows and on, and
 * has then a part of the sums for those of its row, i * columns and on. */
typedef struct {
    const cg_reference *reference;
    double *zetas, *residuals; /* Of each iteration. */
    int order, rank, ranks, rows, columns, row, column;
    MPI_Comm along_column;
    sparse_matrix matrix;
    int first, own; /* Of this rank's piece. */
    double *x, *z, *r, *p, *q;
    double *factor;         /* The pieces of p that this rank multiplies. */
    double *partial;        /* Its part of the products. */
    double *moved, *others; /* A piece on its way; parts of this rank's piece from the others. */
    int *counts, *starts;   /* Of the pieces in `factor`. */
    MPI_Request *requests;
} solver;

static int piece_start(const solver *s, int piece)
{
    return (int)first_of_part(s->order, s->ranks, piece);
}

static int piece_length(const solver *s, int piece)
{
    return piece_start(s, piece + 1) - piece_start(s, piece);
}

/* Bring this rank's piece of a vector to where it is multiplied, and all that it multiplies here. */
static void gather_factor(solver *s, double *vector)
{
    const int to = s->rank % s->rows * s->columns + s->rank / s->rows;
    const int piece = s->column * s->rows + s->row; /* That comes, from the rank of its number. */
    if (s->rows == 1) {
        memcpy(s->factor, vector, (size_t)s->own * sizeof *vector);
        return;
    }
    MPI_Sendrecv(vector, s->own, MPI_DOUBLE, to, MOVE_TAG, s->moved, piece_length(s, piece),
                 MPI_DOUBLE, piece, MOVE_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Allgatherv(s->moved, piece_length(s, piece), MPI_DOUBLE, s->factor, s->counts, s->starts,
                   MPI_DOUBLE, s->along_column);
}

/* Send each rank of the row its piece of the partial sums, and sum up one's own. */
static void sum_products(solver *s, double *product)
{
    const int first_piece = s->row * s->columns;
    int requests = 0;
    for (int other = 0; other < s->columns; other++) {
        const int piece = first_piece + other;
        double *part = s->partial + (piece_start(s, piece) - s->matrix.first_row);
        if (other == s->column) {
            memcpy(product, part, (size_t)s->own * sizeof *product);
            continue;
        }
        MPI_Irecv(s->others + (size_t)other * (size_t)s->own, s->own, MPI_DOUBLE, piece, SUM_TAG,
                  MPI_COMM_WORLD, &s->requests[requests++]);
        MPI_Isend(part, piece_length(s, piece), MPI_DOUBLE, piece, SUM_TAG, MPI_COMM_WORLD,
                  &s->requests[requests++]);
    }
    MPI_Waitall(requests, s->requests, MPI_STATUSES_IGNORE);
    for (int other = 0; other < s->columns; other++) {
        const double *restrict part = s->others + (size_t)other * (size_t)s->own;
        for (int i = 0; other != s->column && i < s->own; i++)
            product[i] += part[i];
    }
}

static void apply_matrix(solver *s, double *vector, double *product)
{
    gather_factor(s, vector);
    multiply(&s->matrix, s->factor, s->partial);
    sum_products(s, product);
}

/* This rank's share of the inner product of two vectors. */
static double own_product(const solver *s, const double *restrict one, const double *restrict other)
{
    double sum[4] = {0.0, 0.0, 0.0, 0.0};
    int i = 0;
    for (; i + 4 <= s->own; i += 4)
        for (int lane = 0; lane < 4; lane++)
            sum[lane] += one[i + lane] * other[i + lane];
    for (; i < s->own; i++)
        sum[0] += one[i] * other[i];
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

static double inner_product(const solver *s, const double *one, const double *other)
{
    double mine = own_product(s, one, other), all = mine;
    if (s->ranks > 1)
        MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

/* Solve matrix * z = x nearly; return the norm of what is left. */
static double solve(solver *s)
{
    const int own = s->own;
    double *restrict z = s->z, *restrict r = s->r, *restrict p = s->p, *restrict q = s->q;
    for (int i = 0; i < own; i++) {
        z[i] = 0.0;
        r[i] = p[i] = s->x[i];
    }
    double rho = inner_product(s, r, r);
    for (int step = 0; step < STEPS_OF_A_SOLUTION; step++) {
        apply_matrix(s, p, q);
        const double alpha = rho / inner_product(s, p, q);
        for (int i = 0; i < own; i++) {
            z[i] += alpha * p[i];
            r[i] -= alpha * q[i];
        }
        const double before = rho;
        rho = inner_product(s, r, r);
        const double beta = rho / before;
        for (int i = 0; i < own; i++)
            p[i] = r[i] + beta * p[i];
    }
    apply_matrix(s, z, q);
    for (int i = 0; i < own; i++)
        r[i] = s->x[i] - q[i];
    return sqrt(inner_product(s, r, r));
}

/* One step of inverse iteration; return the estimate of the eigenvalue. */
static double iterate(solver *s, double shift, double *residual)
{
    *residual = solve(s);
    double mine[2] = {own_product(s, s->x, s->z), own_product(s, s->z, s->z)}, all[2];
    MPI_Allreduce(mine, all, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    const double scale = 1.0 / sqrt(all[1]);
    for (int i = 0; i < s->own; i++)
        s->x[i] = scale * s->z[i];
    return shift + 1.0 / all[0];
}

static void begin_with_ones(solver *s)
{
    for (int i = 0; i < s->own; i++)
        s->x[i] = 1.0;
}

static void set_up(solver *s)
{
    const cg_reference *reference = s->reference;
    MPI_Comm_rank(MPI_COMM_WORLD, &s->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &s->ranks);
    s->order = reference->order;
    if (s->ranks > s->order) {
        complaint about;
        complain(&about, "%d ranks for the %d rows of class %s: at most one rank per row", s->ranks,
                 s->order, chosen_class);
        leave_together(program.name, about.text, EXIT_USAGE);
    }
    /* As square as the ranks allow, with at least as many columns as rows. */
    for (s->rows = s->ranks; s->ranks % s->rows || s->rows > s->ranks / s->rows; s->rows--)
        ;
    s->columns = s->ranks / s->rows;
    s->row = s->rank / s->columns;
    s->column = s->rank % s->columns;
    MPI_Comm_split(MPI_COMM_WORLD, s->column, s->row, &s->along_column);
    s->first = piece_start(s, s->rank);
    s->own = piece_length(s, s->rank);
    s->matrix.first_row = piece_start(s, s->row * s->columns);
    s->matrix.end_row = piece_start(s, (s->row + 1) * s->columns);
    s->matrix.first_column = piece_start(s, s->column * s->rows);
    s->matrix.end_column = piece_start(s, (s->column + 1) * s->rows);
    refuse_too_much(&program, demand_of_matrix(&s->matrix, reference->order, reference->nonzeros));
    make_matrix(&program, &s->matrix, reference->order, reference->nonzeros, SMALLEST_EIGENVALUE,
                reference->shift);
    const size_t own = (size_t)s->own, columns = (size_t)s->columns, size = sizeof(double);
    double **vectors[] = {&s->x, &s->z, &s->r, &s->p, &s->q};
    for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++)
        *vectors[i] = reserve(&program, own, size);
    s->factor = reserve(&program, (size_t)(s->matrix.end_column - s->matrix.first_column), size);
    s->partial = reserve(&program, (size_t)(s->matrix.end_row - s->matrix.first_row), size);
    s->moved = reserve(&program, own + 1, size); /* Pieces differ by one at most. */
    s->others = reserve(&program, own * columns, size);
    s->zetas = reserve(&program, (size_t)reference->iterations, size);
    s->residuals = reserve(&program, (size_t)reference->iterations, size);
    s->requests = reserve(&program, 2 * columns, sizeof *s->requests);
    s->counts = reserve(&program, 2 * (size_t)s->rows, sizeof *s->counts);
    s->starts = s->counts + s->rows;
    for (int i = 0; i < s->rows; i++) {
        s->counts[i] = piece_length(s, s->column * s->rows + i);
        s->starts[i] = piece_start(s, s->column * s->rows + i) - s->matrix.first_column;
    }
}

static void tear_down(solver *s)
{
    double *numbers[] = {s->x, s->z, s->r, s->p, s->q, s->factor, s->partial, s->moved, s->others,
                         s->zetas, s->residuals};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        free(numbers[i]);
    free(s->requests);
    free(s->counts);
    free_matrix(&s->matrix);
    MPI_Comm_free(&s->along_column);
}

static void begin_again(void *solver_of_all)
{
    begin_with_ones(solver_of_all);
}

static void find_eigenvalue(void *solver_of_all)
{
    solver *s = solver_of_all;
    for (int i = 0; i < s->reference->iterations; i++)
        s->zetas[i] = iterate(s, s->reference->shift, &s->residuals[i]);
}

static void verify(void *solver_of_all, verification *v)
{
    const solver *s = solver_of_all;
    if (s->rank == 0)
        verify_real(v, "zeta", s->zetas[s->reference->iterations - 1], s->reference->zeta,
                    cg_tolerance);
}

int main(int argc, char **argv)
{
    begin_benchmark(&program, "CG", &argc, &argv);
    static solver s;
    const cg_reference *reference = s.reference = &cg_references[class_index()];
    set_up(&s);
    begin_with_ones(&s);
    iterate(&s, reference->shift, &s.residuals[0]); /* Untimed. */
    const timed_part part = {begin_again, find_eigenvalue, verify};
    section_times times;
    verification verified = {0};
    time_section(&part, &s, &times, &verified);
    for (int i = 0; s.rank == 0 && i < reference->iterations; i++)
        printf(" %5d  residual %.6e  zeta %.13e\n", i + 1, s.residuals[i], s.zetas[i]);
    /* NPB's count: of a solution, for each row, and of its steps. */
    const double row = reference->nonzeros * (reference->nonzeros + 1.0);
    const run_summary summary = {.benchmark = "CG", .size = {reference->order},
                                 .iterations = reference->iterations,
                                 .operations = 2.0 * reference->iterations * reference->order *
                                               (3.0 + row + STEPS_OF_A_SOLUTION * (5.0 + row) + 3.0),
                                 .operation_type = "floating point"};
    tear_down(&s);
    end_benchmark(&program, &summary, &times, &verified);
}
