/* Time messages between pairs of ranks, many pairs at once: NASA's LBW and its load test, the
 * bisection of mpptest, and the rate of messages. */
#include <mpi.h>
#include <stdio.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../common/buffers.h"
#include "../common/communication.h"
#include "../common/leaving.h"
#include "../common/options.h"
#include "transfer.h"

#define MOST_WINDOW 100000
#define MOST_PARTITIONS 10000

static const char *const partner_names[] = {"near", "bisection", "every", NULL};

static sampling plan;
static choice_list methods;
static size_list sizes, pairs;
static const char *partner;
static long long window, partitions;

static const option options[] = {
    {.name = "method", .kind = OPTION_CHOICES, .value = &methods, .initial = "send-recv",
     .names = transfer_names, .help = "by which calls"},
    {.name = "partner", .kind = OPTION_CHOICE, .value = &partner, .initial = "near",
     .names = partner_names,
     .help = "near: ranks 2i and 2i+1; bisection: rank i of the first half and of the second;\n"
             "      every: rank 0 and each other rank, one after the other"},
    {.name = "pairs", .kind = OPTION_SIZES, .value = &pairs, .initial = "0",
     .help = "how many pairs at once, of near and bisection; 0: all"},
    {.name = "sizes", .kind = OPTION_SIZES, .value = &sizes, .initial = "8",
     .help = "message sizes in bytes"},
    {.name = "window", .kind = OPTION_NUMBER, .value = &window, .initial = "64", .least = 1,
     .most = MOST_WINDOW, .help = "of the method `window`: messages before an answer"},
    {.name = "partitions", .kind = OPTION_NUMBER, .value = &partitions, .initial = "4",
     .least = 1, .most = MOST_PARTITIONS,
     .help = "of the method `partitioned`: parts of a message; sizes are multiples of it"},
    SAMPLING_OPTIONS(plan, "100", "barrier"),
};

static const program_description program = {
    "pairs",
    "pairs: messages between pairs of ranks, in wyeast-records-2 (benchmarks/FORMAT.md).\n"
    "An iteration is a round trip; with `window` several messages one way and an empty answer;\n"
    "with `exchange` one message each way at once.\n",
    "mpiexec -n 4 pairs --method window --partner bisection --sizes 8 --sizes 1000000",
    options, sizeof options / sizeof options[0]};

static int is_every(void)
{
    return strcmp(partner, "every") == 0;
}

/* The number of turns: numbers of pairs or, with `every`, ranks. */
static size_t turns(int ranks)
{
    return is_every() ? (size_t)ranks - 1 : pairs.count;
}

static int takes_all_ranks(int ranks)
{
    for (size_t k = 0; k < pairs.count; k++)
        if (pairs.sizes[k] && pairs.sizes[k] != (size_t)ranks / 2)
            return 0;
    return !is_every() || ranks == 2;
}

/* A sentence where the arguments do not go together or with the world; else NULL. */
static const char *refusal(int ranks, complaint *about)
{
    if (ranks < 2 || (!is_every() && ranks % 2)) {
        complain(about, "the world has %d rank(s), and pairs need %s", ranks,
                 is_every() ? "at least 2" : "an even number");
        return about->text;
    }
    for (size_t k = 0; k < pairs.count && !is_every(); k++)
        if (pairs.sizes[k] > (size_t)ranks / 2) {
            complain(about, "--pairs %zu: %d ranks have %d pairs", pairs.sizes[k], ranks,
                     ranks / 2);
            return about->text;
        }
    for (size_t m = 0; m < methods.count; m++)
        if (strcmp(methods.names[m], "partitioned") == 0 && !takes_all_ranks(ranks))
            /* Open MPI 5.0.11 waits for ever where a rank of the world has none. */
            return "--method partitioned: only with all ranks in pairs at once (--pairs 0)";
    for (size_t m = 0; m < methods.count; m++)
        for (size_t s = 0; s < sizes.count; s++) {
            if (strcmp(methods.names[m], "window") == 0 &&
                sizes.sizes[s] > SIZE_MAX / 2 / (size_t)window) {
                complain(about, "--sizes %zu: too large for a window of %lld messages",
                         sizes.sizes[s], window);
                return about->text;
            }
            if (strcmp(methods.names[m], "partitioned") == 0 &&
                sizes.sizes[s] % (size_t)partitions) {
                complain(about, "--sizes %zu: not a multiple of %lld partitions", sizes.sizes[s],
                         partitions);
                return about->text;
            }
        }
    return NULL;
}

/* Decide who this rank talks to in a turn, and whether it is the one that begins. Returns how many
 * pairs there are. */
static int find_partner(int rank, int ranks, size_t turn, transfer *t)
{
    if (is_every()) {
        const int other = (int)turn + 1;
        t->begins = rank == 0;
        t->partner = rank == 0 ? other : 0;
        t->takes_part = rank == 0 || rank == other;
        return 1;
    }
    const int chosen = pairs.sizes[turn] ? (int)pairs.sizes[turn] : ranks / 2;
    if (strcmp(partner, "near") == 0) {
        t->begins = rank % 2 == 0;
        t->partner = t->begins ? rank + 1 : rank - 1;
        t->takes_part = rank / 2 < chosen;
    } else {
        t->begins = rank < ranks / 2;
        t->partner = t->begins ? rank + ranks / 2 : rank - ranks / 2;
        t->takes_part = rank % (ranks / 2) < chosen;
    }
    return chosen;
}

static void prepare(void *context, unsigned long long n)
{
    transfer *t = context;
    for (size_t m = 0; m < messages_of(t); m++) {
        fill_pattern(t->send + m * t->bytes, t->bytes, n * messages_of(t) + m, t->rank);
        fill_wrong(t->receive + m * t->bytes, t->bytes, n * messages_of(t) + m, t->partner);
    }
}

static long long verify(void *context, unsigned long long n, complaint *about)
{
    const transfer *t = context;
    if (!t->takes_part || !receives_messages(t))
        return 0;
    for (size_t m = 0; m < messages_of(t); m++) {
        long long wrong = find_difference(t->receive + m * t->bytes, t->bytes,
                                          n * messages_of(t) + m, t->partner);
        if (wrong >= 0)
            return complain(about, "%s, %zu bytes: rank %d has rank %d's data wrong from byte "
                                   "%lld of message %zu on", t->method->name, t->bytes, t->rank,
                            t->partner, wrong, m);
    }
    return (long long)(messages_of(t) * t->bytes);
}

static void measure(const transfer_method *method, size_t turn, size_t bytes, int ranks,
                    unsigned char *send, unsigned char *receive)
{
    transfer t = {.method = method, .send = send, .receive = receive, .bytes = bytes,
                  .window = (size_t)window, .partitions = (int)partitions};
    MPI_Comm_rank(MPI_COMM_WORLD, &t.rank);
    const int chosen = find_partner(t.rank, ranks, turn, &t);
    char group[80], calls[80];
    if (is_every())
        snprintf(group, sizeof group, "ranks 0 and %zu", turn + 1);
    else
        snprintf(group, sizeof group, "%d %s pair%s", chosen, partner, chosen == 1 ? "" : "s");
    if (method->has_window)
        snprintf(calls, sizeof calls, "%s of %lld", method->name, window);
    else if (method->has_partitions)
        snprintf(calls, sizeof calls, "%s in %lld", method->name, partitions);
    else
        snprintf(calls, sizeof calls, "%s", method->name);
    if (t.takes_part && method->open)
        method->open(&t);
    verified_operation operation = {
        {.run = run_transfer, .context = &t}, prepare, verify};
    communication about = {"pairs", calls, group, 2 * chosen, bytes,
                           t.takes_part && sends_messages(&t) ? messages_of(&t) * bytes : 0};
    measure_communication(&program, &plan, &operation, &about);
    if (t.takes_part && method->close)
        method->close(&t);
}

int main(int argc, char **argv)
{
    begin_program(&program, &argc, &argv);
    int ranks;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    complaint about;
    const char *sentence = refusal(ranks, &about);
    if (sentence)
        leave_together(program.name, sentence, EXIT_USAGE);

    size_t messages = 1;
    for (size_t m = 0; m < methods.count; m++)
        if (find_transfer(methods.names[m])->has_window)
            messages = (size_t)window;
    const size_t room = messages * largest_size(&sizes);
    unsigned char *send = page_aligned(room), *receive = page_aligned(room);
    if (!send || !receive)
        leave_at_once(program.name, "no memory for messages of the requested sizes");
    begin_output(&program);
    announce_points(&program, methods.count * turns(ranks) * sizes.count);
    for (size_t m = 0; m < methods.count; m++) {
        const transfer_method *method = find_transfer(methods.names[m]);
        if (!method->run) {
            complain(&about, "%s: this MPI has no such calls", method->name);
            leave_out(&program, about.text);
            continue;
        }
        for (size_t turn = 0; turn < turns(ranks); turn++)
            for (size_t s = 0; s < sizes.count; s++)
                measure(method, turn, sizes.sizes[s], ranks, send, receive);
    }
    report_estimate(&plan);
    free(receive);
    free(send);
    end_program(&program, communications_reported());
}
