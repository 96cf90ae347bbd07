/* take_samples with windows, by clocks and offsets that are the test's own, so that it is known which
 * iterations begin late. The argument names the case; prints what came of it as one object of JSON. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#include "../../benchmarks/common/clock_offsets.h"
#include "../../benchmarks/common/sampling.h"

#define TICK_S 1e-7
#define WARMUP 2

static double now;
static int rank, runs, batches;
static const char *what;

/* What the MPI's own stands behind. */
double MPI_Wtime(void)
{
    return now += TICK_S;
}

clock_offset measure_clock_offset(void)
{
    const double errors[] = {1e-6, 3e-6, 2e-6};
    return (clock_offset){0.0, errors[batches++ % 3]};
}

static int is(const char *name)
{
    return strcmp(what, name) == 0;
}

/* Before each timed iteration: what makes it late. */
static void before(void *context)
{
    (void)context;
    const int iteration = runs - WARMUP;
    if (is("always") && iteration >= 0)
        now += 3600.0;
    /* The first begins 110 µs later than the window of 50 µs allows, and the others no earlier. */
    if (is("one-rank") && rank == 1 && iteration >= 0 && iteration < 20)
        now += iteration ? 50e-6 : 110e-6;
}

static void run(void *context)
{
    (void)context;
    const int iteration = runs++ - WARMUP;
    if (is("longer"))
        now += iteration < 0 ? 1e-6 : 1e-3;
    else
        now += iteration < 0 ? 1e-6 : (iteration + 1) * 3 * TICK_S;
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    what = argv[1];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const sampling plan = {.warmup = WARMUP, .iterations = is("batches") ? 20 : 100,
                           .most_iterations = 60, .relative_width = is("batches") ? 1e-6 : 0.0,
                           .synchronisation = "window"};
    const operation timed = {.run = run, .before = before};
    complaint about = {""};
    samples taken;
    const int status = take_samples(&plan, &timed, &taken, &about);
    if (rank == 0) {
        printf("{\"status\": %d, \"sentence\": \"%s\", \"iterations\": %zu, \"discarded\": %zu, "
               "\"clock_error_s\": %.9g, \"median_s\": %.9g, \"longest_s\": %.9g}\n",
               status, about.text, taken.count, taken.discarded, taken.clock_error,
               status ? 0.0 : taken.median_by_rank[0], status ? 0.0 : taken.times[taken.count - 1]);
    }
    if (!status)
        free_samples(&taken);
    MPI_Finalize();
    return 0;
}
