/* Time the messages of many threads at once, all of which call MPI: from each thread of a rank to one of
 * the other's. */
#include <limits.h>
#include <mpi.h>
#include <stdio.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../common/buffers.h"
#include "../common/communication.h"
#include "../common/leaving.h"
#include "../common/options.h"
#include "messages.h"
#include "team.h"

#define MOST_THREADS 1024
#define MOST_WINDOW 100000

static sampling plan;
static choice_list methods;
static size_list sizes, threads;
static long long window;

static const option options[] = {
    {.name = "method", .kind = OPTION_CHOICES, .value = &methods, .initial = "all",
     .names = threads_method_names,
     .help = "the threads' messages differ by communicator or by tag, or are parts of one"},
    {.name = "threads", .kind = OPTION_SIZES, .value = &threads, .initial = "1",
     .help = "how many threads each rank has; each needs a processor"},
    {.name = "sizes", .kind = OPTION_SIZES, .value = &sizes, .initial = "8",
     .help = "message sizes in bytes"},
    {.name = "window", .kind = OPTION_NUMBER, .value = &window, .initial = "64", .least = 1,
     .most = MOST_WINDOW, .help = "messages of each thread before an answer"},
    SAMPLING_OPTIONS(plan, "100", "barrier"),
};

static const program_description program = {
    "threads",
    "threads: messages of many threads at once under MPI_THREAD_MULTIPLE, in wyeast-records-2\n"
    "(benchmarks/FORMAT.md). In an iteration each thread of rank 0 sends a window of messages to\n"
    "one of rank 1; when all are there, rank 0 gets an empty answer.\n",
    "mpiexec -n 2 threads --threads 1 --threads 2 --sizes 8 --sizes 1024",
    options, sizeof options / sizeof options[0]};

/* All messages are one, of which each thread has its part. */
static size_t all_bytes(const messages *all)
{
    return all->threads * all->window * all->bytes;
}

static void prepare(void *context, unsigned long long n)
{
    messages *all = context;
    if (all->rank == 0)
        fill_pattern(all->buffer, all_bytes(all), n, 0);
    else
        fill_wrong(all->buffer, all_bytes(all), n, 0);
}

static long long verify(void *context, unsigned long long n, complaint *about)
{
    const messages *all = context;
    if (all->rank == 0)
        return 0;
    const long long wrong = find_difference(all->buffer, all_bytes(all), n, 0);
    if (wrong < 0)
        return (long long)all_bytes(all);
    const size_t message = (size_t)wrong / all->bytes;
    return complain(about, "%zu bytes: rank 1 has wrong data from byte %zu of message %zu of "
                           "thread %zu on", all->bytes, (size_t)wrong % all->bytes,
                    message % all->window, message / all->window);
}

static void measure(const threads_method *method, messages *all)
{
    char calls[80], group[80];
    snprintf(calls, sizeof calls, "%s window of %zu", method->name, all->window);
    snprintf(group, sizeof group, "pair of %zu thread%s", all->threads,
             all->threads == 1 ? "" : "s");
    if (method->open)
        method->open(all);
    verified_operation operation = {{.run = method->run, .context = all}, prepare, verify};
    communication about = {"threads", calls, group, 2, all->bytes,
                           all->rank == 0 ? all_bytes(all) : 0};
    measure_communication(&program, &plan, &operation, &about);
    if (method->close)
        method->close(all);
}

static const char *refusal(int ranks, int many_may_call, complaint *about)
{
    if (!many_may_call)
        return "this MPI does not give MPI_THREAD_MULTIPLE";
    if (ranks != 2) {
        complain(about, "the world has %d ranks, and threads are timed between exactly 2", ranks);
        return about->text;
    }
    for (size_t t = 0; t < threads.count; t++) {
        if (threads.sizes[t] < 1 || threads.sizes[t] > MOST_THREADS) {
            complain(about, "--threads %zu: must be from 1 to %d", threads.sizes[t], MOST_THREADS);
            return about->text;
        }
        for (size_t s = 0; s < sizes.count; s++)
            if (sizes.sizes[s] > INT_MAX / (threads.sizes[t] * (size_t)window)) {
                complain(about, "--sizes %zu: too large for windows of %lld messages of %zu "
                                "threads", sizes.sizes[s], window, threads.sizes[t]);
                return about->text;
            }
    }
    return NULL;
}

/* What the most threads need. Returns 0, or -1 where memory ran out. */
static int reserve(messages *all)
{
    const size_t most = largest_size(&threads), count = most * (size_t)window;
    all->window = (size_t)window;
    all->buffer = page_aligned(count * largest_size(&sizes));
    all->comms = calloc(most, sizeof *all->comms);
    all->requests = calloc(count, sizeof *all->requests);
    return all->buffer && all->comms && all->requests ? 0 : -1;
}

static void measure_threads(messages *all, size_t count)
{
    all->threads = count;
    if (begin_team(count))
        leave_at_once(program.name, "the system has no more threads");
    for (size_t m = 0; m < methods.count; m++) {
        const threads_method *method = find_threads_method(methods.names[m]);
        for (size_t s = 0; method->run && s < sizes.count; s++) {
            all->bytes = sizes.sizes[s];
            measure(method, all);
        }
    }
    end_team();
}

int main(int argc, char **argv)
{
    const int many_may_call = begin_program_of_threads(&program, &argc, &argv);
    int ranks;
    messages all = {0};
    MPI_Comm_rank(MPI_COMM_WORLD, &all.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    complaint about;
    const char *sentence = refusal(ranks, many_may_call, &about);
    if (sentence)
        leave_together(program.name, sentence, EXIT_USAGE);
    if (reserve(&all))
        leave_at_once(program.name, "no memory for messages of the requested sizes");
    begin_output(&program);
    announce_points(&program, threads.count * methods.count * sizes.count);
    for (size_t m = 0; m < methods.count; m++)
        if (!find_threads_method(methods.names[m])->run) {
            complain(&about, "%s: this MPI has no such calls", methods.names[m]);
            leave_out(&program, about.text);
        }
    for (size_t t = 0; t < threads.count; t++)
        measure_threads(&all, threads.sizes[t]);
    report_estimate(&plan);
    free(all.buffer);
    free(all.comms);
    free(all.requests);
    end_program(&program, communications_reported());
}
