/* The echo of ORNL 1996, section 2.2, between 2 ranks without MPI messages: what the network and
 * the memory do by themselves, to hold MPI against. */
#include <arpa/inet.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../common/buffers.h"
#include "../common/communication.h"
#include "../common/leaving.h"
#include "../common/options.h"
#include "addresses.h"
#include "datagrams.h"
#include "partner.h"
#include "shared_memory.h"
#include "stream.h"

#define LARGEST_HOST_NAME 256

typedef struct {
    const char *name;
    size_t smallest;
    void (*run)(void *context);
    void (*settle)(void *context);
} way;

static const way ways[] = {
    {"udp", 0, echo_datagram, settle_datagrams},
    {"tcp", 1, echo_stream, NULL},
    {"memory", 0, echo_shared_memory, NULL},
};
#define WAYS (sizeof ways / sizeof ways[0])

static const char *const way_names[] = {"udp", "tcp", "memory", NULL};

static sampling plan;
static choice_list chosen;
static size_list sizes;

static const option options[] = {
    {.name = "via", .kind = OPTION_CHOICES, .value = &chosen, .initial = "udp",
     .names = way_names, .help = "how the bytes travel"},
    {.name = "sizes", .kind = OPTION_SIZES, .value = &sizes, .initial = "8",
     .help = "message sizes, with udp at most 65507"},
    SAMPLING_OPTIONS(plan, "100", "none"),
};

static const program_description program = {
    .name = "echo",
    .purpose =
    "echo: round trips between 2 ranks without MPI, in wyeast-records-2 (benchmarks/FORMAT.md).\n"
    "Rank 1 sends back what it gets from rank 0; MPI only starts them and says where they are.\n",
    .example = "mpiexec -n 2 echo --via udp --via tcp --sizes 8 --sizes 1472",
    .options = options, .option_count = sizeof options / sizeof options[0]};

/* A message with the pattern; the number of a numbered datagram then takes its first bytes. */
static void prepare(void *context, unsigned long long n)
{
    partner *with = context;
    fill_pattern(with->send, with->bytes, n, 0);
    fill_wrong(with->receive, with->bytes, n, 0);
}

/* Both compare what they received: rank 0 its own message, which came back. */
static long long verify(void *context, unsigned long long n, complaint *about)
{
    partner *with = context;
    if (with->numbered) {
        if (memcmp(with->receive, &with->sequence, sizeof with->sequence) != 0)
            return complain(about, "echo, %zu bytes: rank %d has a datagram with another number",
                            with->bytes, with->rank);
        fill_pattern(with->receive, sizeof with->sequence, n, 0);
    }
    long long wrong = find_difference(with->receive, with->bytes, n, 0);
    if (wrong >= 0)
        return complain(about, "echo, %zu bytes: rank %d received wrong data from byte %lld on",
                        with->bytes, with->rank, wrong);
    return (long long)with->bytes;
}

static const way *find_way(const char *name)
{
    for (size_t i = 0; i < WAYS; i++)
        if (strcmp(ways[i].name, name) == 0)
            return &ways[i];
    return NULL;
}

static int is_chosen(const char *name)
{
    for (size_t i = 0; i < chosen.count; i++)
        if (strcmp(chosen.names[i], name) == 0)
            return 1;
    return 0;
}

/* A sentence where the arguments do not go together or with the world; else NULL. */
static const char *refusal(int ranks, complaint *about)
{
    if (ranks != 2) {
        complain(about, "the world has %d rank(s), and an echo needs exactly 2", ranks);
        return about->text;
    }
    if (is_chosen("udp") && largest_size(&sizes) > LARGEST_DATAGRAM) {
        complain(about, "--sizes %zu: a udp datagram has at most %d bytes", largest_size(&sizes),
                 LARGEST_DATAGRAM);
        return about->text;
    }
    if (largest_size(&sizes) > SIZE_MAX / 8) {
        complain(about, "--sizes %zu: too large", largest_size(&sizes));
        return about->text;
    }
    return NULL;
}

static int on_same_host(void)
{
    char names[2][LARGEST_HOST_NAME], own[LARGEST_HOST_NAME] = "";
    if (gethostname(own, sizeof own - 1) != 0)
        own[0] = '\0';
    MPI_Allgather(own, (int)sizeof own, MPI_CHAR, names, (int)sizeof own, MPI_CHAR, MPI_COMM_WORLD);
    return strcmp(names[0], names[1]) == 0;
}

/* Connect the ranks, and say on stderr which addresses it is between: a node may have several. */
static void open_network(partner *with, int same_host)
{
    connection found;
    complaint about;
    char own[INET_ADDRSTRLEN] = "?", other[INET_ADDRSTRLEN] = "?";
    if (connect_ranks(same_host, &found, &about))
        leave_together(program.name, about.text, EXIT_FAILED);
    with->stream = found.stream;
    if (is_chosen("udp") && (with->datagrams = open_datagrams(&found, &about)) < 0)
        leave_together(program.name, about.text, EXIT_FAILED);
    inet_ntop(AF_INET, &found.own, own, sizeof own);
    inet_ntop(AF_INET, &found.other, other, sizeof other);
    if (with->rank == 0)
        fprintf(stderr, "%s: rank 0 is at %s and rank 1 at %s\n", program.name, own, other);
}

/* Open what the chosen methods need. Memory that the ranks do not share is only left out. */
static void open_ways(partner *with)
{
    const int same_host = on_same_host();
    complaint about;
    if (is_chosen("udp") || is_chosen("tcp"))
        open_network(with, same_host);
    if (!is_chosen("memory"))
        return;
    if (!same_host)
        complain(&about, "memory: the ranks are on different hosts, which share no memory");
    else
        with->region = share_memory(largest_size(&sizes), &about);
    if (!with->region)
        leave_out(&program, about.text);
}

static int can_go(const partner *with, const way *by)
{
    return by->run != echo_shared_memory || with->region;
}

static size_t count_points(const partner *with)
{
    size_t points = 0;
    for (size_t w = 0; w < chosen.count; w++)
        for (size_t s = 0; s < sizes.count; s++) {
            const way *by = find_way(chosen.names[w]);
            points += can_go(with, by) && sizes.sizes[s] >= by->smallest;
        }
    return points;
}

static void measure(const way *by, size_t bytes, partner *with)
{
    with->bytes = bytes;
    with->numbered = by->run == echo_datagram && bytes >= SHORTEST_NUMBERED;
    const verified_operation operation = {
        {.run = by->run, .settle = by->settle, .context = with, .timed_by_rank_0 = 1},
        prepare, verify};
    const communication about = {"echo", by->name, "pair", 2, bytes, bytes};
    measure_communication(&program, &plan, &operation, &about);
}

/* Datagrams may be lost, but a launch that lost many does not count. */
static void report_losses(const partner *with)
{
    unsigned long long counts[3] = {with->sent_again, with->echoes, with->doubled};
    complaint about;
    MPI_Bcast(counts, 3, MPI_UNSIGNED_LONG_LONG, 0, MPI_COMM_WORLD);
    if (counts[2])
        leave_together(program.name, "udp: the network duplicated datagrams below 8 bytes, which "
                       "have no number to tell their echoes apart", EXIT_FAILED);
    if (counts[0] == 0)
        return;
    complain(&about, "udp: %llu of %llu datagrams had to be sent again, as no echo came in %g s",
             counts[0], counts[1], LOST_AFTER_S);
    if (counts[0] * 100 > counts[1] * MOST_LOST_PERCENT)
        leave_together(program.name, about.text, EXIT_FAILED);
    if (with->rank == 0)
        fprintf(stderr, "%s: %s\n", program.name, about.text);
}

static void close_ways(partner *with)
{
    if (with->stream >= 0)
        close(with->stream);
    if (with->datagrams >= 0)
        close(with->datagrams);
    unmap_memory(with->region);
    free(with->send);
    free(with->receive);
    free(with->spare);
}

int main(int argc, char **argv)
{
    begin_program(&program, &argc, &argv);
    int ranks;
    partner with = {.datagrams = -1, .stream = -1};
    MPI_Comm_rank(MPI_COMM_WORLD, &with.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    complaint about;
    const char *sentence = refusal(ranks, &about);
    if (sentence)
        leave_together(program.name, sentence, EXIT_USAGE);

    /* A late datagram of another size may be received too. */
    const size_t largest = largest_size(&sizes);
    const size_t room = largest > LARGEST_DATAGRAM ? largest : LARGEST_DATAGRAM;
    with.send = page_aligned(room);
    with.receive = page_aligned(room);
    with.spare = page_aligned(LARGEST_DATAGRAM);
    if (!with.send || !with.receive || !with.spare)
        leave_at_once(program.name, "no memory for messages of the requested sizes");
    open_ways(&with);
    const size_t points = count_points(&with);
    if (points == 0)
        leave_together(program.name, "none of what was requested can be measured", EXIT_FAILED);
    begin_output(&program);
    announce_points(&program, points);
    for (size_t w = 0; w < chosen.count; w++) {
        const way *by = find_way(chosen.names[w]);
        for (size_t s = 0; can_go(&with, by) && s < sizes.count; s++)
            if (sizes.sizes[s] >= by->smallest)
                measure(by, sizes.sizes[s], &with);
            else
                leave_out(&program, "tcp, 0 bytes: a stream has no empty message");
    }
    report_losses(&with);
    report_estimate(&plan);
    close_ways(&with);
    end_program(&program, communications_reported());
}
