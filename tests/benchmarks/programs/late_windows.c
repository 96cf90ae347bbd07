/* take_samples with windows, by clocks that are the test's own, so that it is known which iterations
 * begin late. The argument names the case; prints what came of it as one object of JSON. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#include "../../../benchmarks/common/clock.h"
#include "../../../benchmarks/common/sampling.h"

#define TICK_S 1e-7

static double now;
static int rank, runs, warmup;
static const char *what;

/* In the place of common/clock.c: a reading takes a tick, and ranks read one clock. */
double seconds_now(void)
{
    return now += TICK_S;
}

int64_t nanoseconds_at_beginning(void)
{
    return 0;
}

double smallest_step(double (*clock)(void))
{
    (void)clock;
    return TICK_S;
}

void find_clock_identity(char identity[CLOCK_IDENTITY_BYTES])
{
    strcpy(identity, "one clock");
}

static int is(const char *name)
{
    return strcmp(what, name) == 0;
}

/* Before each timed iteration: what makes it late. */
static void before(void *context)
{
    (void)context;
    const int iteration = runs - warmup;
    if ((is("always") || is("capped")) && iteration >= 0)
        now += 3600.0;
    /* The first begins 110 µs later than the window of 50 µs allows, and the others no earlier. */
    if (is("one-rank") && rank == 1 && iteration >= 0 && iteration < 20)
        now += iteration ? 50e-6 : 110e-6;
}

static void run(void *context)
{
    (void)context;
    const int iteration = runs++ - warmup;
    if (is("capped"))
        now += 1e-3;
    else if (is("outlier"))
        now += iteration == -2 ? 1.0 : 1e-6;
    else if (is("longer"))
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
    /* One slow iteration of eleven: the first is in no median. */
    warmup = is("outlier") ? 11 : 2;
    const sampling plan = {.warmup = warmup, .iterations = 100, .synchronisation = "window"};
    const operation timed = {.run = run, .before = before};
    complaint about = {""};
    samples taken;
    const int status = take_samples(&plan, &timed, &taken, &about);
    if (rank == 0) {
        printf("{\"status\": %d, \"sentence\": \"%s\", \"iterations\": %zu, \"discarded\": %zu, "
               "\"clock_error_s\": %.9g, \"elapsed_s\": %.9g, \"median_s\": %.9g, \"longest_s\": %.9g}\n",
               status, about.text, taken.count, taken.discarded, taken.clock_error, now,
               status ? 0.0 : taken.median_by_rank[0], status ? 0.0 : taken.times[taken.count - 1]);
    }
    if (!status)
        free_samples(&taken);
    MPI_Finalize();
    return 0;
}
