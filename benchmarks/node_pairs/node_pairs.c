/* node_pairs: latency and bandwidth between all pairs of ranks, as many at once as there are, to find
 * the node and the link that are slow. Output: benchmarks/FORMAT.md. */
#include <mpi.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "../common/buffers.h"
#include "../common/clock.h"
#include "../common/communication.h"
#include "../common/dissemination.h"
#include "../common/leaving.h"
#include "../common/options.h"
#include "../common/record_pieces.h"
#include "exchange.h"
#include "tournament.h"

/* Where time is short: so many rounds at least, so that each node meets several others. */
#define FEWEST_ROUNDS 3
#define MOST_WINDOW 1000
#define VALUES 4 /* Median, mean, minimum and maximum. */

static long long short_bytes, long_bytes, window, round_trips, windows, sweeps, most_rounds, seed;
static double seconds;
static int alone;

static const option options[] = {
    {.name = "latency-bytes", .kind = OPTION_NUMBER, .value = &short_bytes, .initial = "8",
     .least = 1, .most = INT_MAX, .help = "of a message whose round trip is timed"},
    {.name = "bandwidth-bytes", .kind = OPTION_NUMBER, .value = &long_bytes, .initial = "1048576",
     .least = 1, .most = INT_MAX, .help = "of a message of those that go one way"},
    {.name = "window", .kind = OPTION_NUMBER, .value = &window, .initial = "4", .least = 1,
     .most = MOST_WINDOW, .help = "so many of these are under way at once, before an answer"},
    {.name = "round-trips", .kind = OPTION_NUMBER, .value = &round_trips, .initial = "100",
     .least = 1, .most = 1000000, .help = "timed, each way of each pair in each sweep"},
    {.name = "windows", .kind = OPTION_NUMBER, .value = &windows, .initial = "5", .least = 1,
     .most = 1000000, .help = "timed, each way of each pair in each sweep"},
    {.name = "sweeps", .kind = OPTION_NUMBER, .value = &sweeps, .initial = "5", .least = 1,
     .most = 10000, .help = "so often all pairs are measured"},
    {.name = "most-rounds", .kind = OPTION_NUMBER, .value = &most_rounds, .initial = "0",
     .least = 0, .most = INT_MAX,
     .help = "of a sweep, so that the output of thousands of ranks can be read; 0: all"},
    {.name = "seconds", .kind = OPTION_FRACTION, .value = &seconds, .initial = "0",
     .most = 1000000,
     .help = "for all sweeps together: the first one ends after the round in which its share is\n"
             "      spent, but not before the third, and the others have the same rounds; 0: all"},
    {.name = "seed", .kind = OPTION_NUMBER, .value = &seed, .initial = "1", .least = 0,
     .most = INT_MAX, .help = "of the order of the rounds"},
    {.name = "alone", .kind = OPTION_FLAG, .value = &alone,
     .help = "one pair after the other: what a link carries that no other pair uses; with all\n"
             "      pairs of a round at once they also share the switches between them"},
};

static const program_description program = {
    "node_pairs",
    "node_pairs: latency and bandwidth of all pairs of ranks, one rank a node, in rounds of pairs\n"
    "at once, in wyeast-records-2 (benchmarks/FORMAT.md).\n",
    "srun --nodes=64 --ntasks-per-node=1 node_pairs --seconds 60",
    options, sizeof options / sizeof options[0]};

/* What there is for a round; lists have an entry for each rank. */
typedef struct {
    int rank, ranks, rounds;
    meeting here;
    amount of[MEASURES];
    double *own, *all; /* VALUES of the way from each rank; of all ranks on rank 0. */
    size_t results;
} tournament;

static const char *const measure_names[MEASURES] = {"latency", "bandwidth"};

/* Prove what this rank's pair sends; bytes of all pairs, both ways, or the program ends. */
static unsigned long long prove_all(tournament *t, const amount *what, unsigned long long n)
{
    complaint about = {""};
    long long compared = 0;
    if (t->here.partner >= 0)
        compared = prove_meeting(&t->here, what, n, &about);
    refuse_together(&program, compared < 0, &about);
    unsigned long long mine = (unsigned long long)compared, all = 0;
    MPI_Allreduce(&mine, &all, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

/* Time this rank's pair, first the way from the lower rank; what this rank began stays in `own`. */
static void time_both_ways(tournament *t, measure of, int has_turn)
{
    for (int way = 0; way < 2; way++) {
        /* So that all pairs do the same at the same time. Where they take turns, those without one
         * leave their cores alone: a node may have only one for all that runs on it. */
        if (alone)
            patient_barrier(MPI_COMM_WORLD);
        else
            MPI_Barrier(MPI_COMM_WORLD);
        if (!has_turn)
            continue;
        const int begins = (t->rank < t->here.partner) == (way == 0);
        const time_summary s = time_meeting(&t->here, of, &t->of[of], begins);
        if (begins) {
            t->own[0] = s.median;
            t->own[1] = s.mean;
            t->own[2] = s.min;
            t->own[3] = s.max;
        }
    }
}

static void print_list(const tournament *t, const char *key, int round, int is_receiver)
{
    printf(",\"%s\":[", key);
    const char *comma = "";
    for (int rank = 0; rank < t->ranks; rank++) {
        const int other = opponent(t->ranks, round, rank);
        if (other >= 0) {
            printf("%s%d", comma, is_receiver ? other : rank);
            comma = ",";
        }
    }
    putchar(']');
}

static void print_values(const tournament *t, const char *key, int round, int value)
{
    printf(",\"%s\":[", key);
    const char *comma = "";
    for (int rank = 0; rank < t->ranks; rank++)
        if (opponent(t->ranks, round, rank) >= 0) {
            fputs(comma, stdout);
            print_seconds(stdout, t->all[VALUES * rank + value]);
            comma = ",";
        }
    putchar(']');
}

static void print_round(const tournament *t, measure of, int sweep, int round,
                        unsigned long long verified)
{
    const amount *what = &t->of[of];
    const int pairs = t->ranks / 2;
    printf("{\"record\":\"result\",\"operation\":\"node_pairs\",\"measure\":\"%s\",\"sweep\":%d,"
           "\"round\":%d,\"rounds\":%d,\"at_once\":%d,\"message_bytes\":%zu,\"messages\":%zu,"
           "\"iterations\":%zu",
           measure_names[of], sweep, round, t->rounds, alone ? 1 : pairs, what->bytes,
           what->messages, what->iterations);
    print_list(t, "from", round, 0);
    print_list(t, "to", round, 1);
    print_values(t, "median_s", round, 0);
    print_values(t, "mean_s", round, 1);
    print_values(t, "min_s", round, 2);
    print_values(t, "max_s", round, 3);
    const unsigned long long moved =
        2ULL * (unsigned long long)pairs * what->messages * what->bytes;
    printf(",\"moved_bytes\":%llu,\"verified_bytes\":%llu}\n", moved, verified);
}

/* Which of a round's pairs, counted by their lower ranks, a rank belongs to; -1 of none. */
static int pair_of(int ranks, int round, int rank)
{
    const int other = opponent(ranks, round, rank);
    if (other < 0)
        return -1;
    int before = 0;
    for (int lower = 0; lower < (rank < other ? rank : other); lower++)
        before += opponent(ranks, round, lower) > lower;
    return before;
}

static void run_round(tournament *t, int sweep, int round, unsigned long long n)
{
    t->here.partner = opponent(t->ranks, round, t->rank);
    const int own_turn = alone ? pair_of(t->ranks, round, t->rank) : 0;
    const int turns = alone ? t->ranks / 2 : 1;
    for (measure of = LATENCY; of < MEASURES; of++) {
        const unsigned long long verified = prove_all(t, &t->of[of], n);
        for (int value = 0; value < VALUES; value++)
            t->own[value] = 0.0;
        for (int turn = 0; turn < turns; turn++)
            time_both_ways(t, of, t->here.partner >= 0 && own_turn == turn);
        /* Else ranks that have had their turn poll for the last pair's numbers, on its cores. */
        if (alone)
            patient_barrier(MPI_COMM_WORLD);
        MPI_Gather(t->own, VALUES, MPI_DOUBLE, t->all, VALUES, MPI_DOUBLE, 0, MPI_COMM_WORLD);
        if (t->rank == 0)
            print_round(t, of, sweep, round, verified);
        t->results++;
    }
}

/* The first sweep, as far as there is time; returns how many of the rounds it had, on all ranks. */
static int first_sweep(tournament *t, const int *order)
{
    const int most = most_rounds && most_rounds < t->rounds ? (int)most_rounds : t->rounds;
    const double began = seconds_now(), share = seconds / (double)sweeps;
    int done = 0;
    for (int is_over = 0; !is_over;) {
        run_round(t, 0, order[done], (unsigned long long)done);
        done++;
        is_over = done == most ||
                  (seconds > 0 && done >= FEWEST_ROUNDS && seconds_now() - began >= share);
        MPI_Bcast(&is_over, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    return done;
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

static void make_room(tournament *t)
{
    const size_t room = larger(t->of[LATENCY].bytes, t->of[BANDWIDTH].messages * t->of[BANDWIDTH].bytes);
    const size_t iterations = larger(t->of[LATENCY].iterations, t->of[BANDWIDTH].iterations);
    meeting *m = &t->here;
    m->send = page_aligned(room);
    m->receive = page_aligned(room);
    m->requests = calloc((size_t)window, sizeof *m->requests);
    m->times = calloc(iterations, sizeof *m->times);
    m->scratch = calloc(iterations, sizeof *m->scratch);
    t->own = calloc(VALUES, sizeof *t->own);
    t->all = calloc((size_t)t->ranks * VALUES, sizeof *t->all);
    complaint about = {""};
    const int failed = !m->send || !m->receive || !m->requests || !m->times || !m->scratch ||
                       !t->own || !t->all;
    if (failed)
        complain(&about, "no memory for %lld messages of %lld bytes each way", window, long_bytes);
    refuse_together(&program, failed, &about);
}

static void give_room_back(tournament *t)
{
    free(t->here.send);
    free(t->here.receive);
    free(t->here.requests);
    free(t->here.times);
    free(t->here.scratch);
    free(t->own);
    free(t->all);
}

int main(int argc, char **argv)
{
    begin_program(&program, &argc, &argv);
    tournament t = {.of = {{(size_t)short_bytes, 1, (size_t)round_trips},
                           {(size_t)long_bytes, (size_t)window, (size_t)windows}}};
    MPI_Comm_rank(MPI_COMM_WORLD, &t.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &t.ranks);
    if (t.ranks < 2)
        leave_together(program.name, "the world has one rank, and a pair needs two", EXIT_USAGE);
    t.here.rank = t.rank;
    t.here.is_polite = alone;
    t.rounds = tournament_rounds(t.ranks);
    make_room(&t);
    int *order = calloc((size_t)t.rounds, sizeof *order);
    if (!order)
        leave_at_once(program.name, "no memory for the order of the rounds");
    draw_order(order, t.rounds, (uint64_t)seed);
    begin_output(&program);
    const int done = first_sweep(&t, order);
    for (int sweep = 1; sweep < sweeps; sweep++)
        for (int i = 0; i < done; i++)
            run_round(&t, sweep, order[i],
                      (unsigned long long)sweep * (unsigned long long)t.rounds +
                          (unsigned long long)i);
    free(order);
    give_room_back(&t);
    end_program(&program, t.results);
}
