/* preflight: do the ranks form one world of the asked size and spread, and how do they talk?
 * Output: benchmarks/FORMAT.md. */
#include <limits.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../common/leaving.h"
#include "../common/options.h"
#include "../common/ranks_alike.h"
#include "../common/records.h"
#include "fabric.h"
#include "library_variables.h"
#include "loaded_library.h"
#include "noise.h"
#include "topology.h"
#include "trips.h"

#define LONG_ITERATIONS ((size_t)10) /* A slow network takes a fifth of a second for each. */
/* A one-way time that no path through a network card has been seen to undercut by far, and that
 * shared memory stays under even on a slow machine. */
#define SHARED_MEMORY_LATENCY 5e-6

static long long ranks_asked, hosts_asked, iterations, noise_ms;
static const char *sys;

static const option options[] = {
    {.name = "ranks", .kind = OPTION_NUMBER, .value = &ranks_asked, .least = 1, .most = INT_MAX,
     .help = "fail unless the world has this many ranks"},
    {.name = "hosts", .kind = OPTION_NUMBER, .value = &hosts_asked, .least = 1, .most = INT_MAX,
     .help = "fail unless the ranks are on this many hosts"},
    {.name = "iterations", .kind = OPTION_NUMBER, .value = &iterations, .initial = "100",
     .least = 1, .most = 1000000,
     .help = "round trips of each rank but 0 with one other, of a message of 8 bytes; at most 10 of\n"
             "      them also with 1000000 bytes"},
    {.name = "noise-ms", .kind = OPTION_NUMBER, .value = &noise_ms, .initial = "0", .least = 0,
     .most = 3600000,
     .help = "see for so many milliseconds how quiet each host is (0: not at all)"},
    {.name = "sys", .kind = OPTION_TEXT, .value = &sys, .initial = "/sys",
     .help = "the folder below which network devices and their counters are"},
};

static const program_description program = {
    "preflight",
    "preflight: check that the ranks form one world; show where they are and how they talk, in\n"
    "wyeast-records-2 (benchmarks/FORMAT.md). The latency is right in its order of magnitude;\n"
    "pingpong measures it properly.\n",
    "mpiexec -n 2 preflight --ranks 2 --hosts 1",
    options, sizeof options / sizeof options[0]};

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

/* Find the ranks of this rank's host. */
static ranks_alike ranks_of_host(const host *own)
{
    char text[sizeof(host) + 1];
    ranks_alike found;
    snprintf(text, sizeof text, "%s %s", own->name, own->boot);
    find_alike(&found, text);
    return found;
}

static int same_machine(const host *a, const host *b)
{
    return strcmp(a->boot, b->boot) == 0;
}

static int same_host(const host *a, const host *b)
{
    return strcmp(a->name, b->name) == 0 && same_machine(a, b);
}

static void print_latency(const trip *one, int bytes, size_t often, const time_summary *summary)
{
    printf("{\"record\":\"result\",\"operation\":\"latency\",\"from\":%d,\"to\":%d,"
           "\"message_bytes\":%d,\"iterations\":%zu,\"time_s\":",
           one->from, one->to, bytes, often);
    print_summary(stdout, summary);
    fputs("}\n", stdout);
}

/* Say how two ranks talk, as far as names and the best times can tell: the best ones, since a busy
 * machine makes any path slow and no path fast. */
static void print_transport(const trip *one)
{
    const host *from = &one->there, *to = &one->here;
    double latency = one->brief.min / 2, bandwidth = 2.0 * LONG_BYTES / one->full.min;
    /* Hosts that one machine plays are meant to use a network, but a library that sees through
     * them does not: then the time is that of memory. */
    const char *transport = !same_machine(from, to)           ? "network"
                            : latency < SHARED_MEMORY_LATENCY ? "shared memory"
                            : !same_host(from, to)            ? "network"
                                                              : "unknown";
    const char *where = same_host(from, to)      ? "one host"
                        : same_machine(from, to) ? "two hosts that one machine plays"
                                                 : "two machines";
    char evidence[3 * HOST_LENGTH];
    snprintf(evidence, sizeof evidence,
             "rank %d is on %.200s, rank %d on %.200s, %s; at best %d bytes take %.2f us one way, "
             "and %d bytes pass at %.1f MB/s",
             one->from, from->name, one->to, to->name, where, SHORT_BYTES, latency * 1e6,
             LONG_BYTES, bandwidth / 1e6);
    printf("{\"record\":\"result\",\"operation\":\"transport\",\"from\":%d,\"to\":%d,"
           "\"transport\":\"%s\",\"evidence\":",
           one->from, one->to, transport);
    print_string(stdout, evidence);
    fputs("}\n", stdout);
}

/* What this host's ranks send to each other and to those of other hosts. */
static known_volume volume_of(const ranks_alike *of_host, const trip_plan *plan)
{
    int here, leader = 0, hosts = 1;
    MPI_Comm_size(of_host->sharing, &here);
    if (of_host->leaders != MPI_COMM_NULL) {
        MPI_Comm_rank(of_host->leaders, &leader);
        MPI_Comm_size(of_host->leaders, &hosts);
    }
    const unsigned long long each = bytes_of_pair(plan);
    return (known_volume){(unsigned long long)hosts_met(leader, hosts) * each,
                          2 * (unsigned long long)(here - 1) * each};
}

/* Measure how the ranks talk, and print it. The result is the number of records, rank 0's. */
static size_t print_trips(int rank, const host *own, const ranks_alike *of_host)
{
    const size_t many = (size_t)iterations, few = many < LONG_ITERATIONS ? many : LONG_ITERATIONS;
    const trip_plan plan = {many, few, calloc(LONG_BYTES, 1), calloc(many, sizeof(double)),
                            calloc(many, sizeof(double))};
    if (!plan.buffer || !plan.times || !plan.scratch)
        leave_at_once(program.name, "no memory");
    fabric_look look;
    begin_fabric(&look, sys, of_host);
    const trip mine = time_trips(own, of_host, &plan);
    const known_volume volume = volume_of(of_host, &plan);
    free(plan.buffer);
    free(plan.times);
    free(plan.scratch);
    size_t count = 0;
    trip *every = gather_trips(&mine, of_host, MOST_RANKS_LISTED, &count);
    if (rank == 0 && !every)
        leave_at_once(program.name, "no memory");
    for (size_t i = 0; rank == 0 && i < count; i++) {
        print_latency(&every[i], SHORT_BYTES, many, &every[i].brief);
        print_latency(&every[i], LONG_BYTES, few, &every[i].full);
        print_transport(&every[i]);
    }
    free(every);
    const long hosts = end_fabric(&look, &volume, of_host);
    if (hosts < 0)
        leave_at_once(program.name, "no memory");
    return 3 * count + (size_t)hosts;
}

/* Say which library of MPI the ranks have: a record for each that differs, in order of the ranks. The
 * result is the number of records, rank 0's. */
static size_t print_libraries(int rank)
{
    char own[LONGEST_SAID];
    ranks_alike of_library;
    int having;
    find_mpi_library(own, sizeof own);
    find_alike(&of_library, own);
    MPI_Comm_size(of_library.sharing, &having);
    const size_t count = rank == 0 ? (size_t)of_library.texts : 0;
    char(*paths)[LONGEST_SAID] = calloc(count ? count : 1, sizeof *paths);
    int *ranks_having = calloc(count ? count : 1, sizeof *ranks_having);
    if (!paths || !ranks_having)
        leave_at_once(program.name, "no memory");
    if (of_library.leaders != MPI_COMM_NULL) {
        MPI_Gather(own, LONGEST_SAID, MPI_BYTE, paths, LONGEST_SAID, MPI_BYTE, 0,
                   of_library.leaders);
        MPI_Gather(&having, 1, MPI_INT, ranks_having, 1, MPI_INT, 0, of_library.leaders);
    }
    for (size_t i = 0; i < count; i++) {
        printf("{\"record\":\"result\",\"operation\":\"library\",\"ranks\":%d,\"path\":",
               ranks_having[i]);
        print_string(stdout, paths[i]);
        fputs("}\n", stdout);
    }
    free(paths);
    free(ranks_having);
    free_alike(&of_library);
    return count;
}

/* Refuse a world that is not as asked for; each rank 0 says it for its own world. */
static void demand_world(int hosts, int ranks)
{
    complaint about;
    if (ranks_asked && ranks_asked != ranks) {
        complain(&about,
                 "%d rank(s) formed a world, not %lld; several worlds of one rank mean "
                 "that the launcher and the image's MPI do not speak the same PMI",
                 ranks, ranks_asked);
        leave_together(program.name, about.text, EXIT_FAILED);
    }
    if (hosts_asked && hosts_asked != hosts) {
        complain(&about, "the ranks are on %d host(s), not %lld", hosts, hosts_asked);
        leave_together(program.name, about.text, EXIT_FAILED);
    }
}

int main(int argc, char **argv)
{
    begin_program(&program, &argc, &argv);
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const host own = own_host();
    ranks_alike of_host = ranks_of_host(&own);
    demand_world(of_host.texts, ranks);
    begin_output(&program);

    size_t results = 1;
    if (rank == 0)
        printf("{\"record\":\"result\",\"operation\":\"world\",\"ranks\":%d,"
               "\"distinct_hosts\":%d}\n",
               ranks, of_host.texts);
    results += print_libraries(rank);
    const long topologies = print_topologies(sys, &of_host);
    if (topologies < 0)
        leave_at_once(program.name, "no memory");
    results += (size_t)topologies;
    library_counters *counters = rank == 0 ? begin_counters() : NULL;
    results += print_trips(rank, &own, &of_host);
    results += print_library_variables(counters);
    if (noise_ms) {
        const long hosts = print_noise(1e-3 * (double)noise_ms, &of_host);
        if (hosts < 0)
            leave_at_once(program.name, "no memory");
        results += (size_t)hosts;
    }
    free_alike(&of_host);
    end_program(&program, results);
}
