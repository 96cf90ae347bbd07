/* Emulate parallel programs: applications that run side by side, each of them computing and
 * messages along the edges of a graph, as section 3.1 of the IIT report proposes. */
#include <limits.h>
#include <mpi.h>

#include "../common/communication.h"
#include "../common/estimate.h"
#include "../common/leaving.h"
#include "../common/options.h"
#include "applications.h"
#include "computing.h"
#include "measure.h"
#include "report.h"

#define MOST_STEPS 1000000
#define MOST_ITERATIONS 1000000
#define LONGEST_MEAN_S 3600
/* Of --estimate: iterations are long, and every second one is in the opposite order. */
#define ESTIMATED_ITERATIONS 2

static choice_list application_texts;
static const char *placement, *distribution, *compute;
static long long message_bytes, steps, iterations, warmup, seed;
static double compute_mean, compute_deviation;
static int raw, estimate;

static const option options[] = {
    {.name = "application", .kind = OPTION_TEXTS, .value = &application_texts,
     .initial = "client-server",
     .help = "an application: GRAPH, GRAPH:RANKS, or file=PATH (docs/how-to/"
             "emulate-an-application.md);\n      GRAPH is client-server, farm, ring, pipeline or "
             "stencil; without RANKS it shares the ranks left"},
    {.name = "placement", .kind = OPTION_CHOICE, .value = &placement, .initial = "consecutive",
     .names = placement_names,
     .help = "each application has consecutive ranks, or ranks are dealt one by one"},
    {.name = "message-bytes", .kind = OPTION_NUMBER, .value = &message_bytes, .initial = "8192",
     .least = 0, .most = INT_MAX, .help = "every message of a graph that is not from a file"},
    {.name = "steps", .kind = OPTION_NUMBER, .value = &steps, .initial = "100", .least = 1,
     .most = MOST_STEPS, .help = "steps of a run: post the messages, compute, wait for them"},
    {.name = "compute-mean", .kind = OPTION_FRACTION, .value = &compute_mean, .initial = "0.001",
     .most = LONGEST_MEAN_S, .help = "mean time in seconds that a rank computes in a step"},
    {.name = "distribution", .kind = OPTION_CHOICE, .value = &distribution, .initial = "constant",
     .names = distribution_names, .help = "of the times that a rank computes"},
    {.name = "compute-deviation", .kind = OPTION_FRACTION, .value = &compute_deviation,
     .initial = "0", .most = 10,
     .help = "for normal, uniform, lognormal: the standard deviation as a fraction of the mean"},
    {.name = "compute", .kind = OPTION_CHOICE, .value = &compute, .initial = "busy",
     .names = compute_names, .help = "whether a computing rank occupies its processor"},
    {.name = "seed", .kind = OPTION_NUMBER, .value = &seed, .initial = "1", .least = 0,
     .most = LLONG_MAX, .help = "of the random times"},
    {.name = "iterations", .kind = OPTION_NUMBER, .value = &iterations, .initial = "10",
     .least = 1, .most = MOST_ITERATIONS,
     .help = "timed iterations; each runs every application alone, then all together"},
    {.name = "warmup", .kind = OPTION_NUMBER, .value = &warmup, .initial = "1", .least = 0,
     .most = MOST_ITERATIONS, .help = "untimed iterations before them"},
    {.name = "raw", .kind = OPTION_FLAG, .value = &raw,
     .help = "also print the times of every iteration"},
    ESTIMATE_OPTION(estimate),
};

static const program_description program = {
    "emulator",
    "emulator: the time, overlap and slowdown of parallel applications that run side by side,\n"
    "in wyeast-records-2 (benchmarks/FORMAT.md). Each is a graph of messages, with computing\n"
    "between them; its rank 0 is the master.\n",
    "mpiexec -n 8 emulator --application ring:4 --application farm:4 --message-bytes 65536",
    options, sizeof options / sizeof options[0]};

/* All bytes of an application must be countable. */
static int check_bytes_to_send(const application_list *list, complaint *about)
{
    for (size_t a = 0; a < list->count; a++) {
        const unsigned long long in_step = step_bytes(&list->all[a].graph);
        const unsigned long long all_steps =
            (unsigned long long)(iterations * steps) * RUNS_OF_AN_ITERATION;
        if (in_step > LLONG_MAX / all_steps)
            return complain(about, "application %zu: %llu bytes a step in %llu steps are too many "
                                   "to count", a, in_step, all_steps);
    }
    return 0;
}

/* An iteration is one of all applications together. */
static void print_estimate_of(const application_list *list, const emulation *measured)
{
    sweep_estimate sweep = {0};
    const double all = (double)warmup + (double)iterations;
    for (size_t a = 0; a < list->count; a++)
        estimate_point(&sweep, a == 0 ? measured->once : 0.0, a == 0 ? measured->each : 0.0, all,
                       all);
    print_estimate(&sweep);
}

int main(int argc, char **argv)
{
    begin_program(&program, &argc, &argv);
    emulation_plan plan = {
        .how = {distribution, compute_deviation, (unsigned long long)seed, compute[0] == 's'},
        .steps = steps, .iterations = iterations, .warmup = warmup};
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    complaint about = {""};
    application_list list;
    if (check_computing(&plan.how, &about) ||
        make_applications(&application_texts, placement, (size_t)message_bytes, compute_mean,
                          &list, &about) ||
        check_bytes_to_send(&list, &about))
        leave_together(program.name, about.text, EXIT_USAGE);
    begin_output(&program);
    emulation measured;
    if (estimate) {
        plan.iterations = iterations < ESTIMATED_ITERATIONS ? iterations : ESTIMATED_ITERATIONS;
        plan.warmup = few_warmups(warmup);
    }
    measure_applications(&program, &list, &plan, &measured);
    if (estimate && rank == 0)
        print_estimate_of(&list, &measured);
    const int failed = rank == 0 && !estimate &&
                       report_emulation(&list, &plan, &measured, raw, &about);
    refuse_together(&program, failed, &about);
    const size_t results = estimate ? 0 : list.count;
    free_emulation(&measured);
    free_applications(&list);
    end_program(&program, results);
}
