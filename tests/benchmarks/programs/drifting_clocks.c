/* Windows between clocks of which the truth is known: each rank's began elsewhere and runs on another
 * rate, those of uneven ranks 5e-4 s a second faster than rank 0's and of others slower. Prints how wrong
 * iterations' times are and what error is stated, as JSON.
 * `rates CHANGE` compares the error stated for a clock that changes its rate by so much in the middle
 * between two comparisons with how wrong the line between them is. `chain` says how wrong the line to
 * rank 0 is that follows from the lines of three clocks to the next ones. */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../../../benchmarks/common/clock.h"
#include "../../../benchmarks/common/sampling.h"
#include "../../../benchmarks/common/windows.h"

#define DRIFT 5e-4
#define WARMUP 20
#define ITERATIONS 300
#define RUNS (WARMUP + 16 * ITERATIONS)

static int rank, runs, wants_end;
static double base, truth, began[RUNS], ended[RUNS];

static double true_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec - base;
}

/* What the clock of a rank shows at a true time. */
static double clock_of(int one, double seconds)
{
    const double drift = one == 0 ? 0.0 : one % 2 ? DRIFT : -DRIFT / one;
    return 7.0 * one + seconds * (1 + drift);
}

/* In the place of common/clock.c. The reading after an operation is its end. */
double seconds_now(void)
{
    truth = true_seconds();
    if (wants_end)
        ended[runs - 1] = truth;
    wants_end = 0;
    return clock_of(rank, truth);
}

int64_t nanoseconds_at_beginning(void)
{
    return 0;
}

double smallest_step(double (*clock)(void))
{
    (void)clock;
    return 1e-9;
}

void find_clock_identity(char identity[CLOCK_IDENTITY_BYTES])
{
    snprintf(identity, CLOCK_IDENTITY_BYTES, "of rank %d", rank);
}

/* The reading before it was its beginning. Each takes another time, by which it is known again: longer by
 * more than what a look at the clock takes than the one before. */
static void run(void *context)
{
    (void)context;
    if (runs >= RUNS)
        abort();
    began[runs] = truth;
    while (true_seconds() < truth + 1e-4 + 3e-7 * (double)runs)
        ;
    runs++;
    wants_end = 1;
}

static double change_of_rate(double change)
{
    /* Two comparisons 100 s apart, and a third after as long, each wrong by 1 µs at most. */
    const double bent = change * 50.0;
    const clock_offset earlier = {0, 0, 1e-6}, before = {100, 1e-3, 1e-6};
    const clock_offset after = {200, 2e-3 + bent, 1e-6};
    const clock_line between = line_through(&before, &after);
    const double knee = 150.0 + 1e-3 + 5e-4;
    printf("{\"wrong_s\": %.9g, \"error_s\": %.9g}\n", fabs(time_by_line(&between, 150.0) - knee),
           error_between(&earlier, &before, &after));
    return 0;
}

/* Lines through the truth at 100 and 103 s, and where they lead at 150 s. */
static int chain_lines(void)
{
    clock_line whole = {0.0, 0.0, 0.0, 0.0};
    for (int one = 1; one <= 3; one++) {
        clock_offset seen[2];
        for (int i = 0; i < 2; i++) {
            const double at = clock_of(one, 100.0 + 3.0 * i);
            seen[i] = (clock_offset){at, clock_of(one - 1, 100.0 + 3.0 * i) - at, 1e-9};
        }
        const clock_line to_reference = line_through(&seen[0], &seen[1]);
        whole = line_over(&to_reference, &whole);
    }
    printf("{\"wrong_s\": %.9g, \"rate_error\": %.9g}\n",
           fabs(time_by_line(&whole, clock_of(3, 150.0)) - 150.0), whole.rate_error);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "chain") == 0)
        return chain_lines();
    if (argc == 3 && strcmp(argv[1], "rates") == 0)
        return change_of_rate(atof(argv[2])) != 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    base = true_seconds();
    MPI_Bcast(&base, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    const sampling plan = {.warmup = WARMUP, .iterations = ITERATIONS, .synchronisation = "window"};
    const operation timed = {.run = run};
    complaint about = {""};
    samples taken;
    if (take_samples(&plan, &timed, &taken, &about)) {
        fprintf(stderr, "%s\n", about.text);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    static double first[RUNS], last[RUNS];
    MPI_Reduce(began, first, RUNS, MPI_DOUBLE, MPI_MIN, 0, MPI_COMM_WORLD);
    MPI_Reduce(ended, last, RUNS, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        /* Those that were late are left out, and rank 0's own times are the truth. A run that was interrupted
         * may have taken as long as another one, to the nanosecond: neither is known again. */
        size_t known = 0;
        double wrong = 0.0;
        for (size_t i = 0; i < taken.count; i++) {
            size_t alike = 0, run_of = 0;
            for (size_t one = WARMUP; one < (size_t)runs; one++)
                if (fabs(ended[one] - began[one] - taken.own_times[i]) <= 1e-10) {
                    alike++;
                    run_of = one;
                }
            if (alike != 1)
                continue;
            wrong = fmax(wrong, fabs(last[run_of] - first[run_of] - taken.times[i]));
            known++;
        }
        printf("{\"iterations\": %zu, \"known\": %zu, \"discarded\": %zu, \"wrong_s\": %.9g, "
               "\"clock_error_s\": %.9g, \"drifted_s\": %.9g}\n",
               taken.count, known, taken.discarded, wrong, taken.clock_error,
               DRIFT * (ended[runs - 1] - began[WARMUP]));
    }
    free_samples(&taken);
    MPI_Finalize();
    return 0;
}
