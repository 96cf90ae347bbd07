#include "communication.h"

#include <mpi.h>
#include <stdlib.h>

#include "clock.h"
#include "estimate.h"
#include "leaving.h"
#include "progress.h"
#include "records.h"

static size_t reported, measured;
static progress sweep;
static sweep_estimate estimate;

size_t communications_reported(void)
{
    return reported;
}

void announce_points(const program_description *program, size_t points)
{
    begin_progress(&sweep, program->name, "points", points, seconds_now);
}

void refuse_together(const program_description *program, int failed, const complaint *about)
{
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int mine = failed ? rank : ranks, first = ranks;
    MPI_Allreduce(&mine, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (first == ranks)
        return;
    complaint said = {""};
    if (rank == first)
        said = *about;
    MPI_Bcast(said.text, (int)sizeof said.text, MPI_CHAR, first, MPI_COMM_WORLD);
    leave_together(program->name, said.text, EXIT_FAILED);
}

static void report(const program_description *program, const sampling *plan,
                   const communication *about, const samples *taken, unsigned long long moved,
                   unsigned long long verified)
{
    int ranks;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (print_communication(stdout, plan, about, taken, (size_t)ranks, moved, verified))
        leave_at_once(program->name, "no memory for the order statistics");
}

/* One rank after another, so that rank 0 has memory for one more series alone, however many ranks
 * there are. Collective over MPI_COMM_WORLD. */
static void report_by_rank(const program_description *program, const communication *about,
                           const samples *taken)
{
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    complaint what = {""};
    double *times = rank == 0 ? calloc(taken->count, sizeof *times) : NULL;
    if (rank == 0 && !times)
        complain(&what, "no memory for another rank's times");
    refuse_together(program, rank == 0 && !times, &what);
    /* Options limit the iterations to the range of an int. */
    const int count = (int)taken->count;
    if (rank == 0)
        print_iterations_of_rank(stdout, about, 0, taken->own_times, taken->count);
    for (int other = 1; other < ranks; other++) {
        /* On request, since a rank that sends without one fills rank 0's memory. */
        if (rank == 0) {
            MPI_Send(NULL, 0, MPI_BYTE, other, 0, MPI_COMM_WORLD);
            MPI_Recv(times, count, MPI_DOUBLE, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            print_iterations_of_rank(stdout, about, other, times, taken->count);
        } else if (rank == other) {
            MPI_Recv(NULL, 0, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(taken->own_times, count, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD);
        }
    }
    free(times);
}

/* With --relative-width a point has from one batch to the most that it may. */
static void estimate_communication(const sampling *plan, double once, const samples *taken)
{
    const double warmup = (double)plan->warmup, batch = (double)plan->iterations;
    const double most = (double)plan->most_iterations;
    if (plan->relative_width <= 0.0)
        estimate_point(&estimate, once, taken->each, warmup + batch, warmup + batch);
    else
        estimate_point(&estimate, once, taken->each, warmup + (batch < most ? batch : most),
                       warmup + most);
}

static double slowest_median(const samples *taken)
{
    int rank, ranks;
    double slowest = 0.0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int i = 0; rank == 0 && i < ranks; i++)
        if (taken->median_by_rank[i] > slowest)
            slowest = taken->median_by_rank[i];
    MPI_Bcast(&slowest, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    return slowest;
}

double measure_communication(const program_description *program, const sampling *plan,
                           const verified_operation *operation, const communication *about)
{
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    complaint what = {""};
    void *context = operation->timed.context;
    const unsigned long long n = measured;
    const double began = seconds_now();
    operation->prepare(context, n);
    MPI_Barrier(MPI_COMM_WORLD);
    operation->timed.run(context);
    settle_runs(&operation->timed);
    long long compared = operation->verify(context, n, &what);
    refuse_together(program, compared < 0, &what);
    unsigned long long mine[2] = {about->moved_bytes, (unsigned long long)compared}, all[2];
    MPI_Allreduce(mine, all, 2, MPI_UNSIGNED_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
    if (all[0] != all[1]) {
        complain(&what, "%s %s, %zu bytes: %llu bytes were sent to other ranks and %llu arrived",
                 about->operation, about->method, about->message_bytes, all[0], all[1]);
        leave_together(program->name, what.text, EXIT_FAILED);
    }
    const double verifying = seconds_now() - began;
    samples taken;
    refuse_together(program, take_samples(plan, &operation->timed, &taken, &what) != 0, &what);
    measured++;
    if (rank == 0) {
        if (plan->estimate) {
            estimate_communication(plan, verifying, &taken);
        } else {
            report(program, plan, about, &taken, all[0], all[1]);
            reported++;
        }
        count_part(&sweep);
    }
    if (plan->raw_by_rank && !plan->estimate)
        report_by_rank(program, about, &taken);
    const double slowest = slowest_median(&taken);
    free_samples(&taken);
    return slowest;
}

void report_estimate(const sampling *plan)
{
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0 && plan->estimate)
        print_estimate(&estimate);
}

void leave_out(const program_description *program, const char *sentence)
{
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0)
        fprintf(stderr, "%s: left out: %s\n", program->name, sentence);
}
