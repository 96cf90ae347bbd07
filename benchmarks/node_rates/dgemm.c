/* dgemm: how fast every core multiplies matrices while all others do so too. */
#include <float.h>
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fortran_blas.h"
#include "matrix.h"
#include "rate_measurement.h"

#define LARGEST_N 100000
#define CHECKED_ENTRIES 200

static sampling plan;
static long long n;

static const option options[] = {
    {.name = "n", .kind = OPTION_NUMBER, .value = &n, .initial = "2000", .least = 1,
     .most = LARGEST_N, .help = "order of the matrices; a rank has three of 8 N^2 bytes"},
    RATE_OPTIONS(plan, "5"),
};

static const program_description program = {
    "dgemm",
    "dgemm: C = A B of square matrices on every rank at once, by the BLAS that HPL has here, in\n"
    "wyeast-records-2 (benchmarks/FORMAT.md).\n",
    "mpiexec -n 2 dgemm --n 2000 --iterations 5",
    options, sizeof options / sizeof options[0]};

typedef struct {
    double *a, *b, *c;
} product;

static void multiply(void *context)
{
    const product *p = context;
    const int order = (int)n;
    const double one = 1.0, zero = 0.0;
    dgemm_("N", "N", &order, &order, &order, &one, p->a, &order, p->b, &order, &zero, p->c, &order);
}

/* The entries that are compared, the same each time, by their number. */
static size_t checked_entry(int i, unsigned long long *state)
{
    /* The corners first: a routine is most likely wrong at an edge. */
    const size_t order = (size_t)n, last = order - 1;
    if (i < 4)
        return (size_t)(i % 2) * last + (size_t)(i / 2) * last * order;
    const size_t row = (size_t)(next_number(state) * (double)n);
    return row + (size_t)(next_number(state) * (double)n) * order;
}

/* Before each iteration, untimed: what is compared in the end is no number until it is computed. */
static void spoil(void *context)
{
    const product *p = context;
    unsigned long long state = 1;
    for (int i = 0; i < CHECKED_ENTRIES; i++)
        p->c[checked_entry(i, &state)] = NAN;
}

/* Compare an entry of C with a dot product of our own, by what rounding can do: n times the
 * machine's precision of the sum of the absolute values. Returns how much of that the difference
 * is, or -1 with a sentence where it is more. */
static double check_entry(const product *p, size_t row, size_t column, int rank, complaint *about)
{
    const size_t order = (size_t)n;
    long double sum = 0.0L, size = 0.0L;
    for (size_t k = 0; k < order; k++) {
        const long double term = (long double)p->a[row + k * order] * p->b[k + column * order];
        sum += term;
        size += fabsl(term);
    }
    const double found = p->c[row + column * order];
    const double part = (double)(fabsl(found - sum) / ((long double)n * DBL_EPSILON * size));
    if (part <= 1.0)
        return part;
    return complain(about, "rank %d, C(%zu,%zu) of order %lld is %.17g, and the dot product of its "
                           "row of A and column of B, computed here, is %.17Lg: the product is "
                           "wrong", rank, row + 1, column + 1, n, found, sum);
}

/* Returns the largest part of the allowed difference that an entry has, or -1 with a sentence. */
static double check_product(const product *p, int rank, complaint *about)
{
    unsigned long long state = 1;
    double largest = 0.0;
    for (int i = 0; i < CHECKED_ENTRIES; i++) {
        const size_t entry = checked_entry(i, &state);
        const double part = check_entry(p, entry % (size_t)n, entry / (size_t)n, rank, about);
        if (part < 0.0)
            return part;
        largest = fmax(largest, part);
    }
    return largest;
}

int main(int argc, char **argv)
{
    begin_program(&program, &argc, &argv);
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const size_t entries = (size_t)n * (size_t)n;
    product p = {numbers_or_leave(&program, entries), numbers_or_leave(&program, entries),
                 numbers_or_leave(&program, entries)};
    fill_uniform(p.a, entries, (unsigned long long)rank * 2 + 1);
    fill_uniform(p.b, entries, (unsigned long long)rank * 2 + 2);
    for (size_t i = 0; i < entries; i++)
        p.c[i] = NAN; /* What is not computed is seen. */
    begin_output(&program);
    multiply(&p);
    complaint about;
    double part = check_product(&p, rank, &about), largest = part;
    refuse_together(&program, part < 0.0, &about);
    MPI_Reduce(&part, &largest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    char keys[200];
    snprintf(keys, sizeof keys,
             "\"operation\":\"dgemm\",\"n\":%lld,\"flop\":%llu,\"checked_entries\":%d,"
             "\"error\":%.9e", n, 2ULL * (unsigned long long)n * entries, CHECKED_ENTRIES, largest);
    const rate_work work = {{.run = multiply, .before = spoil, .context = &p}, 1, keys};
    measure_rate(&program, &plan, &work);
    /* What was timed must be right too: the last iteration's product. */
    refuse_together(&program, check_product(&p, rank, &about) < 0.0, &about);
    free(p.a);
    free(p.b);
    free(p.c);
    end_program(&program, 1);
}
