#include "communication.h"

#include <mpi.h>

#include "estimate.h"
#include "leaving.h"
#include "records.h"

/* Between two lines of progress, in seconds. */
#define PROGRESS_S 10.0

static size_t reported, announced, measured;
static double first_began, last_said;

size_t communications_reported(void)
{
    return reported;
}

void announce_points(size_t points)
{
    announced = points;
    first_began = last_said = MPI_Wtime();
}

static void say_progress(const program_description *program)
{
    double now = MPI_Wtime();
    if (now - last_said < PROGRESS_S || measured >= announced)
        return;
    last_said = now;
    fprintf(stderr, "%s: %zu of %zu points after %.0f s\n", program->name, measured, announced,
            now - first_began);
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

void measure_communication(const program_description *program, const sampling *plan,
                           const verified_operation *operation, const communication *about)
{
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    complaint what = {""};
    void *context = operation->timed.context;
    const unsigned long long n = measured;
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
    samples taken;
    refuse_together(program, take_samples(plan, &operation->timed, &taken, &what) != 0, &what);
    measured++;
    if (rank == 0) {
        if (!plan->estimate) {
            report(program, plan, about, &taken, all[0], all[1]);
            reported++;
        }
        say_progress(program);
    }
    free_samples(&taken);
}

void report_estimate(const sampling *plan)
{
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0 && plan->estimate)
        print_estimate(measured, estimated_seconds());
}

void leave_out(const program_description *program, const char *sentence)
{
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0)
        fprintf(stderr, "%s: left out: %s\n", program->name, sentence);
}
