/* The echo test of NASA (2003, LBW) and ORNL (1996) between two tasks of PVM. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <pvm3.h>

#include "../common/buffers.h"
#include "../common/clock.h"
#include "../common/communication.h"
#include "../common/disturbances.h"
#include "../common/estimate.h"
#include "../common/leaving.h"
#include "../common/placement.h"
#include "../common/progress.h"
#include "../common/record_pieces.h"
#include "../common/written.h"
#include "pvm_pair.h"

#define TASKS 2

static const char *const method_names[] = {"pvm_send", "pvm_send-in-place", "pvm_psend", NULL};
static const char *const route_names[] = {"direct", "daemon", NULL};

static struct {
    size_list sizes;
    choice_list methods;
    const char *route;
    sampling plan;
} asked = {.plan.synchronisation = "none"};

static const option options[] = {
    {.name = "sizes", .kind = OPTION_SIZES, .value = &asked.sizes, .initial = "0:1000000:250000",
     .help = "bytes of a message; may be repeated"},
    {.name = "method", .kind = OPTION_CHOICES, .value = &asked.methods, .initial = "all",
     .names = method_names, .help = "by which calls a message is moved"},
    {.name = "route", .kind = OPTION_CHOICE, .value = &asked.route, .initial = "direct",
     .names = route_names, .help = "from task to task, or through PVM's daemons"},
    {.name = "iterations", .kind = OPTION_NUMBER, .value = &asked.plan.iterations,
     .initial = "100", .least = 1, .most = 100000000, .help = "timed round trips"},
    {.name = "warmup", .kind = OPTION_NUMBER, .value = &asked.plan.warmup, .initial = "10",
     .least = 0, .most = 100000000, .help = "untimed round trips before them"},
    {.name = "raw", .kind = OPTION_FLAG, .value = &asked.plan.raw,
     .help = "also print the time of every round trip"},
    ESTIMATE_OPTION(asked.plan.estimate),
};

static const program_description program = {
    .name = "pvm_echo",
    .purpose = "pvm_ranks -n 2 pvm_echo [OPTION ...]\n"
               "Time round trips of messages between two tasks of PVM. The first task starts the\n"
               "second, on another host if there is one, which sends as many bytes back.",
    .options = options,
    .option_count = sizeof options / sizeof options[0],
};

/* What the tasks have for one point. */
typedef struct {
    task_pair pair;
    unsigned char *sent, *received;
    double *times, *scratch;
    unsigned long long verifications;
    progress done;
    sweep_estimate estimated;
} echo_state;

static message_calls calls_of(const char *method)
{
    message_calls found = BY_SEND;
    while (strcmp(method_names[found], method) != 0)
        found++;
    return found;
}

/* What task 1 reports in its own messages; both tasks are the same program. */
static int tell(const echo_state *state, const void *facts, size_t bytes, complaint *about)
{
    return send_message(&state->pair, BY_SEND, facts, bytes, about);
}

static int hear(const echo_state *state, void *facts, size_t bytes, complaint *about)
{
    return receive_message(&state->pair, BY_SEND, facts, bytes, about);
}

/* One round trip, as this task sees it: task 1 begins with the receive. */
static int echo_once(const echo_state *state, message_calls calls, size_t bytes, complaint *about)
{
    if (state->pair.number == 0)
        return send_message(&state->pair, calls, state->sent, bytes, about) ||
                       receive_message(&state->pair, calls, state->received, bytes, about)
                   ? -1 : 0;
    return receive_message(&state->pair, calls, state->received, bytes, about) ||
                   send_message(&state->pair, calls, state->sent, bytes, about)
               ? -1 : 0;
}

/* One untimed round trip; task 0 learns how many bytes both have compared. */
static int verify(echo_state *state, message_calls calls, size_t bytes,
                  unsigned long long *verified, complaint *about)
{
    const unsigned long long n = state->verifications++;
    const int me = state->pair.number;
    fill_pattern(state->sent, bytes, n, me);
    fill_wrong(state->received, bytes, n, 1 - me);
    if (echo_once(state, calls, bytes, about))
        return -1;
    long long wrong = find_difference(state->received, bytes, n, 1 - me);
    if (wrong >= 0)
        return complain(about, "task %d received byte %lld of %zu wrong", me, wrong, bytes);
    *verified = bytes;
    if (me == 1)
        return tell(state, verified, sizeof *verified, about);
    unsigned long long of_other = 0;
    if (hear(state, &of_other, sizeof of_other, about))
        return -1;
    *verified += of_other;
    return check_route(&state->pair, about);
}

/* Time round trips after untimed ones. */
static int time_echoes(echo_state *state, message_calls calls, size_t bytes, long long warmup,
                       size_t count, complaint *about)
{
    for (long long i = 0; i < warmup; i++)
        if (echo_once(state, calls, bytes, about))
            return -1;
    for (size_t i = 0; i < count; i++) {
        double began = seconds_now();
        if (echo_once(state, calls, bytes, about))
            return -1;
        state->times[i] = seconds_now() - began;
    }
    return 0;
}

static int estimate(echo_state *state, message_calls calls, size_t bytes, double verifying,
                    complaint *about)
{
    const size_t count = (size_t)few_iterations(asked.plan.iterations);
    const double all = (double)asked.plan.warmup + (double)asked.plan.iterations;
    if (time_echoes(state, calls, bytes, few_warmups(asked.plan.warmup), count, about))
        return -1;
    estimate_point(&state->estimated, verifying,
                   summarise(state->times, count, state->scratch).median, all, all);
    return 0;
}

static int measure(echo_state *state, const char *method, size_t bytes, complaint *about)
{
    const message_calls calls = calls_of(method);
    const size_t count = (size_t)asked.plan.iterations;
    const double began = seconds_now();
    unsigned long long verified = 0;
    if (verify(state, calls, bytes, &verified, about))
        return -1;
    if (asked.plan.estimate)
        return estimate(state, calls, bytes, seconds_now() - began, about);
    if (time_echoes(state, calls, bytes, asked.plan.warmup, count, about))
        return -1;
    double median = summarise(state->times, count, state->scratch).median;
    if (state->pair.number == 1)
        return tell(state, &median, sizeof median, about);
    double medians[TASKS] = {median, 0.0};
    if (hear(state, &medians[1], sizeof medians[1], about))
        return -1;
    char name[80];
    snprintf(name, sizeof name, "%s/%s", method, asked.route);
    const communication what = {
        .operation = "echo", .method = name, .group = "pair", .ranks = TASKS, .message_bytes = bytes,
    };
    const samples taken = {.times = state->times, .count = count, .median_by_rank = medians};
    if (print_communication(stdout, &asked.plan, &what, &taken, TASKS, 2ULL * bytes, verified))
        return complain(about, "no memory for the order statistics");
    return 0;
}

static int print_facts(const rank_place *places, complaint *about)
{
    char *parameters = parameters_of(&program);
    if (!parameters)
        return complain(about, "no memory for the header");
    char library[32];
    snprintf(library, sizeof library, "PVM %s", pvm_version());
    print_header_record(stdout, &(header_facts){
        .format = RECORD_FORMAT, .program = program.name, .library = library,
        .mpi_standard = "none", .places = places,
        .ranks = TASKS, .clock = CLOCK_NAME, .clock_tick = clock_tick(),
        .clock_resolution = smallest_step(seconds_now), .mpi_wtime = "null",
        .parameters = parameters,
    });
    free(parameters);
    return 0;
}

static int introduce(const echo_state *state, complaint *about)
{
    rank_place places[TASKS];
    find_place(&places[state->pair.number]);
    if (state->pair.number == 1)
        return tell(state, &places[1], sizeof places[1], about);
    return hear(state, &places[1], sizeof places[1], about) || print_facts(places, about) ? -1 : 0;
}

static int reserve(echo_state *state, complaint *about)
{
    const size_t largest = largest_size(&asked.sizes);
    state->sent = page_aligned(largest);
    state->received = page_aligned(largest);
    state->times = calloc((size_t)asked.plan.iterations, sizeof *state->times);
    state->scratch = calloc((size_t)asked.plan.iterations, sizeof *state->scratch);
    if (state->sent && state->received && state->times && state->scratch)
        return 0;
    return complain(about, "no memory for messages of %zu bytes and %lld times", largest,
                    asked.plan.iterations);
}

/* Task 0 learns what both have counted. */
static int end_together(echo_state *state, size_t results, complaint *about)
{
    disturbances counted = own_disturbances(), of_other;
    char nothing = 0;
    if (state->pair.number == 1) {
        /* It is told about the end, which its own must not overtake. */
        complaint end;
        if (tell(state, &counted, sizeof counted, about))
            return -1;
        hear(state, &nothing, 0, &end);
        return 0;
    }
    if (hear(state, &of_other, sizeof of_other, about))
        return -1;
    counted.stopped += of_other.stopped;
    if (of_other.carriers > counted.carriers)
        counted.carriers = of_other.carriers;
    if (asked.plan.estimate)
        print_estimate(&state->estimated);
    const char *lost = print_end_of(stdout, results, counted, (rank_ends){NULL, 0});
    if (lost)
        return complain(about, "standard output could not be written: %s", lost);
    return tell(state, &nothing, 0, about);
}

static int run(echo_state *state, complaint *about)
{
    if (reserve(state, about) || introduce(state, about))
        return -1;
    const size_t points = asked.methods.count * asked.sizes.count;
    begin_progress(&state->done, program.name, "points", points, seconds_now);
    for (size_t m = 0; m < asked.methods.count; m++)
        for (size_t s = 0; s < asked.sizes.count; s++) {
            if (measure(state, asked.methods.names[m], asked.sizes.sizes[s], about))
                return -1;
            if (state->pair.number == 0)
                count_part(&state->done);
        }
    return end_together(state, asked.plan.estimate ? 0 : points, about);
}

static int tasks_as_asked(complaint *about)
{
    const char *ranks = getenv("PVM_RANKS");
    if (!ranks || strcmp(ranks, "2") == 0)
        return 0;
    return complain(about, "the echo test needs 2 tasks, not %.20s", ranks);
}

int main(int argc, char **argv)
{
    echo_state state = {.pair = {0, -1, ROUTE_DIRECT}};
    complaint about = {""};
    asked_for what;
    if (parse_options(&program, argc, argv, &what, &about) || tasks_as_asked(&about)) {
        fprintf(stderr, "%s: %s\n", program.name, about.text);
        return EXIT_USAGE;
    }
    if (what == ASKED_HELP)
        print_help(stdout, &program);
    if (what == ASKED_VERSION)
        printf("%s %s\n", program.name, PROGRAM_VERSION);
    int status = 0;
    if (what != ASKED_RUN && see_output_written(program.name))
        return EXIT_FAILED;
    if (what == ASKED_RUN && begin_disturbances()) {
        fprintf(stderr, "%s: stops of this process cannot be counted\n", program.name);
        return EXIT_FAILED;
    }
    if (what == ASKED_RUN) {
        message_route route = strcmp(asked.route, "direct") == 0 ? ROUTE_DIRECT : ROUTE_DAEMON;
        status = join_pair(&state.pair, route, argv, &about);
        if (!status)
            status = run(&state, &about);
        leave_pair(&state.pair, status ? about.text : NULL);
    }
    if (status)
        fprintf(stderr, "%s: %s\n", program.name, about.text);
    free(state.sent);
    free(state.received);
    free(state.times);
    free(state.scratch);
    free_options(&program);
    return status ? EXIT_FAILED : EXIT_SOUND;
}
