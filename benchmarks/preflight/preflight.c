/* preflight: do the ranks form one world of the asked size and spread, and how do they talk?
 * Output: benchmarks/FORMAT.md. */
#include <limits.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../common/clock.h"
#include "../common/leaving.h"
#include "../common/options.h"
#include "../common/records.h"
#include "loaded_library.h"

#define TAG 1
#define SHORT_BYTES 8
#define LONG_BYTES 1000000
#define LONG_ITERATIONS ((size_t)10) /* A slow network takes a fifth of a second for each. */
#define WARMUP ((size_t)2)
#define HOST_LENGTH 256
#define PATH_LENGTH 1024
/* A one-way time that no path through a network card has been seen to undercut by far, and that
 * shared memory stays under even on a slow machine. */
#define SHARED_MEMORY_LATENCY 5e-6

static long long ranks_asked, hosts_asked, iterations;

static const option options[] = {
    {.name = "ranks", .kind = OPTION_NUMBER, .value = &ranks_asked, .least = 1, .most = INT_MAX,
     .help = "fail unless the world has this many ranks"},
    {.name = "hosts", .kind = OPTION_NUMBER, .value = &hosts_asked, .least = 1, .most = INT_MAX,
     .help = "fail unless the ranks are on this many hosts"},
    {.name = "iterations", .kind = OPTION_NUMBER, .value = &iterations, .initial = "100",
     .least = 1, .most = 1000000,
     .help = "round trips from rank 0 to each other rank with a message of 8 bytes; at most 10 of\n"
             "      them also with 1000000 bytes"},
};

static const program_description program = {
    "preflight",
    "preflight: check that the ranks form one world; show where they are and how they talk, in\n"
    "wyeast-records-2 (benchmarks/FORMAT.md). The latency is right in its order of magnitude;\n"
    "pingpong measures it properly.\n",
    "mpiexec -n 2 preflight --ranks 2 --hosts 1",
    options, sizeof options / sizeof options[0]};

/* Where a rank is. Two machines may have one name, and one machine may play several hosts, each
 * with its own name; the identifier of the kernel's boot tells machines apart. */
typedef struct {
    char name[HOST_LENGTH];
    char boot[64]; /* Empty where it cannot be read. */
} host;

static host own_host(void)
{
    host own;
    memset(&own, 0, sizeof own);
    if (gethostname(own.name, sizeof own.name - 1) != 0)
        snprintf(own.name, sizeof own.name, "unknown");
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "r");
    if (file) {
        if (!fgets(own.boot, sizeof own.boot, file))
            own.boot[0] = '\0';
        fclose(file);
    }
    return own;
}

/* Gather every rank's host on every rank; NULL when memory is short. */
static host *all_hosts(int ranks)
{
    host own = own_host();
    host *hosts = calloc((size_t)ranks, sizeof *hosts);
    if (!hosts)
        return NULL;
    MPI_Allgather(&own, (int)sizeof own, MPI_BYTE, hosts, (int)sizeof own, MPI_BYTE,
                  MPI_COMM_WORLD);
    return hosts;
}

static int same_machine(const host *a, const host *b)
{
    return strcmp(a->boot, b->boot) == 0;
}

static int same_host(const host *a, const host *b)
{
    return strcmp(a->name, b->name) == 0 && same_machine(a, b);
}

static int count_distinct(const host *hosts, int ranks)
{
    int distinct = 0;
    for (int i = 0; i < ranks; i++) {
        int seen = 0;
        for (int j = 0; j < i && !seen; j++)
            seen = same_host(&hosts[i], &hosts[j]);
        distinct += !seen;
    }
    return distinct;
}

/* Time round trips between rank 0 and a peer; the result is rank 0's. */
static time_summary round_trips(int rank, int peer, char *buffer, int bytes, double *times,
                                double *scratch, size_t iterations)
{
    time_summary none = {0};
    if (rank != 0 && rank != peer)
        return none;
    int other = rank == 0 ? peer : 0;
    for (size_t i = 0; i < WARMUP + iterations; i++) {
        double began = seconds_now();
        if (rank == 0) {
            MPI_Send(buffer, bytes, MPI_BYTE, other, TAG, MPI_COMM_WORLD);
            MPI_Recv(buffer, bytes, MPI_BYTE, other, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(buffer, bytes, MPI_BYTE, other, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(buffer, bytes, MPI_BYTE, other, TAG, MPI_COMM_WORLD);
        }
        if (i >= WARMUP)
            times[i - WARMUP] = seconds_now() - began;
    }
    return rank == 0 ? summarise(times, iterations, scratch) : none;
}

static void print_latency(int peer, int bytes, size_t iterations, const time_summary *summary)
{
    printf("{\"record\":\"result\",\"operation\":\"latency\",\"from\":0,\"to\":%d,"
           "\"message_bytes\":%d,\"iterations\":%zu,\"time_s\":",
           peer, bytes, iterations);
    print_summary(stdout, summary);
    fputs("}\n", stdout);
}

/* Say how rank 0 and a peer talk, as far as names and the best times can tell: the best ones, since
 * a busy machine makes any path slow and no path fast. */
static void print_transport(const host *hosts, int peer, double short_trip, double long_trip)
{
    const host *own = hosts, *other = hosts + peer;
    double latency = short_trip / 2, bandwidth = 2.0 * LONG_BYTES / long_trip;
    /* Hosts that one machine plays are meant to use a network, but a library that sees through
     * them does not: then the time is that of memory. */
    const char *transport = !same_machine(own, other)         ? "network"
                            : latency < SHARED_MEMORY_LATENCY ? "shared memory"
                            : !same_host(own, other)          ? "network"
                                                              : "unknown";
    const char *where = same_host(own, other)      ? "one host"
                        : same_machine(own, other) ? "two hosts that one machine plays"
                                                   : "two machines";
    char evidence[3 * HOST_LENGTH];
    snprintf(evidence, sizeof evidence,
             "rank 0 is on %.200s, rank %d on %.200s, %s; at best %d bytes take %.2f us one way, "
             "and %d bytes pass at %.1f MB/s",
             own->name, peer, other->name, where, SHORT_BYTES, latency * 1e6, LONG_BYTES,
             bandwidth / 1e6);
    printf("{\"record\":\"result\",\"operation\":\"transport\",\"from\":0,\"to\":%d,"
           "\"transport\":\"%s\",\"evidence\":",
           peer, transport);
    print_string(stdout, evidence);
    fputs("}\n", stdout);
}

/* Say which library of MPI the ranks have: a record for each that differs, in order of the ranks. The
 * result is the number of records, rank 0's. */
static size_t print_libraries(int rank, int ranks)
{
    char own[PATH_LENGTH];
    find_mpi_library(own, sizeof own);
    char(*paths)[PATH_LENGTH] = calloc((size_t)ranks, sizeof *paths);
    if (!paths)
        leave_at_once(program.name, "no memory");
    MPI_Gather(own, PATH_LENGTH, MPI_BYTE, paths, PATH_LENGTH, MPI_BYTE, 0, MPI_COMM_WORLD);
    size_t printed = 0;
    for (int i = 0; rank == 0 && i < ranks; i++) {
        int first = 0, having = 0;
        while (strcmp(paths[first], paths[i]) != 0)
            first++;
        if (first < i)
            continue;
        for (int j = i; j < ranks; j++)
            having += strcmp(paths[j], paths[i]) == 0;
        printf("{\"record\":\"result\",\"operation\":\"library\",\"ranks\":%d,\"path\":", having);
        print_string(stdout, paths[i]);
        fputs("}\n", stdout);
        printed++;
    }
    free(paths);
    return printed;
}

/* Refuse a world that is not as asked for; each rank 0 says it for its own world. */
static void demand_world(const host *hosts, int ranks)
{
    complaint about;
    if (ranks_asked && ranks_asked != ranks) {
        complain(&about,
                 "%d rank(s) formed a world, not %lld; several worlds of one rank mean "
                 "that the launcher and the image's MPI do not speak the same PMI",
                 ranks, ranks_asked);
        leave_together(program.name, about.text, EXIT_FAILED);
    }
    int distinct = count_distinct(hosts, ranks);
    if (hosts_asked && hosts_asked != distinct) {
        complain(&about, "the ranks are on %d host(s), not %lld", distinct,
                 hosts_asked);
        leave_together(program.name, about.text, EXIT_FAILED);
    }
}

int main(int argc, char **argv)
{
    begin_program(&program, &argc, &argv);
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const size_t many = (size_t)iterations, few = many < LONG_ITERATIONS ? many : LONG_ITERATIONS;
    host *hosts = all_hosts(ranks);
    char *buffer = calloc(LONG_BYTES, 1);
    double *times = calloc(many, sizeof *times);
    double *scratch = calloc(many, sizeof *scratch);
    if (!hosts || !buffer || !times || !scratch)
        leave_at_once(program.name, "no memory");
    demand_world(hosts, ranks);
    begin_output(&program);

    size_t results = 1;
    if (rank == 0)
        printf("{\"record\":\"result\",\"operation\":\"world\",\"ranks\":%d,"
               "\"distinct_hosts\":%d}\n",
               ranks, count_distinct(hosts, ranks));
    results += print_libraries(rank, ranks);
    for (int peer = 1; peer < ranks; peer++) {
        time_summary brief = round_trips(rank, peer, buffer, SHORT_BYTES, times, scratch, many);
        time_summary full = round_trips(rank, peer, buffer, LONG_BYTES, times, scratch, few);
        if (rank == 0) {
            print_latency(peer, SHORT_BYTES, many, &brief);
            print_latency(peer, LONG_BYTES, few, &full);
            print_transport(hosts, peer, brief.min, full.min);
        }
        results += 3;
    }
    free(scratch);
    free(times);
    free(buffer);
    free(hosts);
    end_program(&program, results);
}
