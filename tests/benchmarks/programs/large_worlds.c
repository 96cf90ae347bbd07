/* What the programs need and print in a world that is larger than any machine at hand, by their own
 * functions: `large_worlds sizes|records RANKS RANKS_OF_NODE`. */
#include <inttypes.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../../benchmarks/collective/layout.h"
#include "../../../benchmarks/common/communication.h"
#include "../../../benchmarks/common/record_pieces.h"
#include "../../../benchmarks/preflight/trips.h"
#include "../../../benchmarks/some_to_some/interfaces.h"

#define BYTES 8192
#define MESSAGES 6

static void print_collectives(int ranks)
{
    const char *separator = "";
    fputs("\"collectives\":{", stdout);
    for (size_t i = 0; operation_names[i]; i++) {
        const collective *what = find_collective(operation_names[i]);
        size_t root[2], other[2];
        find_room(what, BYTES, 0, ranks, 0, root);
        find_room(what, BYTES, ranks - 1, ranks, 0, other);
        printf("%s\"%s\":{\"root\":%zu,\"other\":%zu,\"layout\":%zu}", separator, what->name,
               root[0] + root[1], other[0] + other[1], layout_bytes(what, ranks));
        separator = ",";
    }
    fputs("},", stdout);
}

static int print_exchange(int ranks)
{
    const drawing how = {.seed = 1, .ranks = ranks, .messages = MESSAGES, .most_bytes = BYTES,
                         .is_double = 1};
    interfaces found;
    if (draw_interfaces(&how, ranks / 2, &found))
        return 1;
    printf("\"exchange\":{\"of_all\":%zu,\"own\":%zu,\"list_bytes\":%zu},", found.of_all,
           found.count, found.room * sizeof *found.own);
    free_interfaces(&found);
    return 0;
}

static void print_preflight(int ranks, int of_node)
{
    const trip_plan plan = {.brief = 100, .full = 10};
    const int nodes = (ranks + of_node - 1) / of_node;
    const size_t told = trips_told(of_node, ranks, MOST_RANKS_LISTED);
    printf("\"preflight\":{\"messages_of_leader\":%llu,\"told\":%zu,\"leader_bytes\":%zu,"
           "\"rank_0_bytes\":%zu},",
           messages_of_leader((unsigned long long)of_node, (unsigned long long)nodes, &plan),
           told * (size_t)nodes, (size_t)of_node * sizeof(trip),
           told * (size_t)nodes * sizeof(trip));
}

static int print_sizes(int ranks, int of_node)
{
    fputs("{", stdout);
    print_collectives(ranks);
    if (print_exchange(ranks))
        return 1;
    print_preflight(ranks, of_node);
    printf("\"late\":[");
    for (int turn = 0; turn < late_ranks(ranks); turn++)
        printf("%s%d", turn ? "," : "", late_rank(turn, ranks));
    printf("],\"header_bytes\":%zu}\n", (size_t)ranks * sizeof(rank_place));
    return 0;
}

/* A rank a processor, bound to it; the last node's are not bound. */
static void fill_place(rank_place *place, int rank, int ranks, int of_node)
{
    const int is_last = rank / of_node == (ranks - 1) / of_node;
    snprintf(place->host, sizeof place->host, "node%05d", rank / of_node);
    for (int processor = 0; processor < of_node && processor < MOST_PROCESSORS; processor++)
        if (is_last || processor == rank % of_node)
            place->processors[processor / 8] |= (unsigned char)(1u << processor % 8);
}

static int print_records(int ranks, int of_node)
{
    rank_place *places = calloc((size_t)ranks, sizeof *places);
    double *medians = calloc((size_t)ranks, sizeof *medians), time = 1e-3;
    if (!places || !medians)
        return 1;
    for (int rank = 0; rank < ranks; rank++) {
        fill_place(&places[rank], rank, ranks, of_node);
        medians[rank] = 1e-6 * (1 + rank);
    }
    print_header_record(stdout, &(header_facts){
        .format = RECORD_FORMAT, .program = "collective", .library = "none", .mpi_standard = "4.0",
        .places = places, .ranks = (size_t)ranks, .clock = "CLOCK_MONOTONIC", .clock_tick = 1e-9,
        .clock_resolution = 1e-9, .mpi_wtime = "null", .parameters = "{}"});
    const sampling plan = {.synchronisation = "barrier"};
    const communication about = {"bcast", "", "world", ranks, BYTES, 0};
    const samples taken = {.times = &time, .own_times = &time, .count = 1,
                           .median_by_rank = medians};
    const int failed = print_communication(stdout, &plan, &about, &taken, (size_t)ranks, 8, 8);
    free(places);
    free(medians);
    return failed || print_end(stdout, 1);
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    const int ranks = atoi(argv[2]), of_node = atoi(argv[3]);
    return strcmp(argv[1], "sizes") == 0 ? print_sizes(ranks, of_node)
                                         : print_records(ranks, of_node);
}
