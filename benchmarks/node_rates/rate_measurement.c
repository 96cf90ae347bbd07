#include "rate_measurement.h"

#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "../common/buffers.h"
#include "../common/clock_frequency.h"
#include "../common/leaving.h"
#include "../common/records.h"

/* The work, and what the core's clock was before each iteration of it. */
typedef struct {
    const operation *inner;
    double *hertz;
    size_t count;
} clocked;

static void run(void *context)
{
    const operation *inner = ((clocked *)context)->inner;
    inner->run(inner->context);
}

static void before(void *context)
{
    clocked *c = context;
    c->hertz[c->count++] = clock_frequency();
    if (c->inner->before)
        c->inner->before(c->inner->context);
}

static void print_result(const sampling *plan, const rate_work *work, samples *taken, int ranks,
                         const double *hertz_by_rank, double *scratch)
{
    for (size_t i = 0; i < taken->count; i++)
        taken->times[i] /= (double)work->repetitions;
    for (int i = 0; i < ranks; i++)
        taken->median_by_rank[i] /= (double)work->repetitions;
    const time_summary summary = summarise(taken->times, taken->count, scratch);
    printf("{\"record\":\"result\",%s,\"ranks\":%d,\"iterations\":%zu,\"warmup\":%lld,\"time_s\":",
           work->keys, ranks, taken->count, plan->warmup);
    print_summary(stdout, &summary);
    fputs(",\"median_by_rank_s\":", stdout);
    print_seconds_of_each(stdout, taken->median_by_rank, (size_t)ranks);
    fputs(",\"clock_hz_by_rank\":", stdout);
    print_seconds_of_each(stdout, hertz_by_rank, (size_t)ranks);
    fputs("}\n", stdout);
}

void measure_rate(const program_description *program, const sampling *plan, const rate_work *work)
{
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    sampling whole = *plan;
    whole.synchronisation = "barrier";
    const size_t runs = (size_t)(plan->iterations + plan->warmup);
    double *hertz = calloc(runs, sizeof *hertz), *scratch = calloc(runs, sizeof *scratch);
    double *by_rank = rank == 0 ? calloc((size_t)ranks, sizeof *by_rank) : NULL;
    complaint about;
    const int failed = !hertz || !scratch || (rank == 0 && !by_rank);
    if (failed)
        complain(&about, "no memory for the times of %zu iterations", runs);
    refuse_together(program, failed, &about);
    clocked context = {&work->timed, hertz, 0};
    const operation timed = {.run = run, .before = before, .context = &context};
    samples taken;
    refuse_together(program, take_samples(&whole, &timed, &taken, &about) != 0, &about);
    double median = summarise(hertz, context.count, scratch).median;
    MPI_Gather(&median, 1, MPI_DOUBLE, by_rank, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    if (rank == 0)
        print_result(plan, work, &taken, ranks, by_rank, scratch);
    free_samples(&taken);
    free(hertz);
    free(scratch);
    free(by_rank);
}

double *numbers_or_leave(const program_description *program, size_t count)
{
    double *numbers = NULL;
    complaint about;
    if (count <= SIZE_MAX / sizeof *numbers)
        numbers = (double *)(void *)page_aligned(count * sizeof *numbers);
    if (!numbers)
        complain(&about, "no memory for %zu numbers", count);
    refuse_together(program, !numbers, &about);
    return numbers;
}
