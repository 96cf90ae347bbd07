/* IS: rank integer keys by sorting them into buckets (RNR-94-007, section 2.6). Its messages are one
 * exchange of all keys between all ranks in an iteration. */
#include <limits.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../common/leaving.h"
#include "benchmark.h"
#include "keys.h"

/* The first rank changes keys up to this place. */
enum { CHANGED_KEYS = 2 * IS_ITERATIONS + 1 };
#define KEY_SUM_MASK ((1LL << 40) - 1)

static const option options[] = {CLASS_OPTION, REPETITION_OPTION};
static const program_description program = {
    "nas_is",
    "nas_is: IS of the NAS Parallel Benchmarks, with NPB's summary lines.\n"
    "Any number of ranks, up to one for each of the 512 (class S) or 1024 buckets.\n",
    "mpiexec -n 4 nas_is --class A", options, sizeof options / sizeof options[0]};

typedef struct {
    const is_reference *reference;
    int rank, ranks;
    int buckets, shift; /* A key's bucket is its highest bits. */
    long long first_key;
    int own_keys;
    int *keys;     /* As drawn, in their order. */
    int *sent;     /* The same by buckets. */
    int *received; /* Those of this rank's buckets. */
    int received_keys;
    size_t room;
    long long *mine_of_bucket, *all_of_bucket; /* And the test keys behind them. */
    int *start_of_bucket, *first_bucket;       /* first_bucket: of each rank, and an end. */
    int *send_counts, *send_starts, *receive_counts, *receive_starts;
    unsigned smallest;    /* Key that this rank has buckets for. */
    int *not_above;       /* Of each of these: how many of its keys are not above it. */
    size_t key_values;    /* How many these are, and how many there is room for. */
    size_t value_room;
    long long keys_below; /* On lower ranks. */
    long long test_rank[IS_ITERATIONS + 1][IS_TEST_KEYS];
} sorting;

/* Count the keys of each bucket, here and everywhere, and find the values of the test keys. */
static void count_buckets(sorting *s)
{
    memset(s->mine_of_bucket, 0,
           (size_t)(s->buckets + IS_TEST_KEYS) * sizeof *s->mine_of_bucket);
    const int *keys = s->keys, own_keys = s->own_keys, shift = s->shift;
    for (int i = 0; i < own_keys; i++)
        s->mine_of_bucket[keys[i] >> shift]++;
    for (int i = 0; i < IS_TEST_KEYS; i++) {
        const long long place = s->reference->test_index[i] - s->first_key;
        if (place >= 0 && place < s->own_keys)
            s->mine_of_bucket[s->buckets + i] = s->keys[place];
    }
    MPI_Allreduce(s->mine_of_bucket, s->all_of_bucket, s->buckets + IS_TEST_KEYS, MPI_LONG_LONG,
                  MPI_SUM, MPI_COMM_WORLD);
}

/* Give each rank some buckets in a row, as many keys as its share as near as they allow. */
static void share_buckets(sorting *s)
{
    const long long keys = 1LL << s->reference->log2_keys;
    long long before = 0;
    int bucket = 0;
    for (int rank = 0; rank < s->ranks; rank++) {
        s->first_bucket[rank] = bucket;
        if (rank == s->rank)
            s->keys_below = before;
        while (bucket < s->buckets && before < first_of_part(keys, s->ranks, rank + 1))
            before += s->all_of_bucket[bucket++];
    }
    s->first_bucket[s->ranks] = bucket = s->buckets;
    s->smallest = (unsigned)s->first_bucket[s->rank] << s->shift;
    s->key_values =
        (size_t)(s->first_bucket[s->rank + 1] - s->first_bucket[s->rank]) << s->shift;
}

static void sort_into_buckets(sorting *s)
{
    int start = 0;
    for (int bucket = 0; bucket < s->buckets; bucket++) {
        s->start_of_bucket[bucket] = start;
        start += (int)s->mine_of_bucket[bucket];
    }
    for (int rank = 0; rank < s->ranks; rank++) {
        const int first = s->first_bucket[rank], end = s->first_bucket[rank + 1];
        s->send_starts[rank] = first < s->buckets ? s->start_of_bucket[first] : s->own_keys;
        s->send_counts[rank] =
            (end < s->buckets ? s->start_of_bucket[end] : s->own_keys) - s->send_starts[rank];
    }
    /* None is part of another: else numbers would be read again for every key. */
    int *restrict sent = s->sent, *restrict next = s->start_of_bucket;
    const int *restrict keys = s->keys;
    const int own_keys = s->own_keys, shift = s->shift;
    for (int i = 0; i < own_keys; i++) {
        const int key = keys[i];
        sent[next[key >> shift]++] = key;
    }
}

static void *grown(void *memory, size_t count)
{
    free(memory);
    return reserve_huge(&program, count, sizeof(int));
}

static void exchange_keys(sorting *s)
{
    long long received_keys = 0;
    MPI_Alltoall(s->send_counts, 1, MPI_INT, s->receive_counts, 1, MPI_INT, MPI_COMM_WORLD);
    for (int rank = 0; rank < s->ranks; rank++) {
        s->receive_starts[rank] = (int)received_keys;
        received_keys += s->receive_counts[rank];
        /* Whole buckets come, so that it can be more than a rank's own keys. */
        if (received_keys > INT_MAX)
            leave_at_once(program.name, "a rank's buckets have more keys than MPI counts: use more "
                                        "ranks");
    }
    s->received_keys = (int)received_keys;
    if ((size_t)received_keys > s->room) {
        s->room = (size_t)received_keys + IS_ITERATIONS * CHANGED_KEYS;
        s->received = grown(s->received, s->room);
    }
    MPI_Alltoallv(s->sent, s->send_counts, s->send_starts, MPI_INT, s->received,
                  s->receive_counts, s->receive_starts, MPI_INT, MPI_COMM_WORLD);
}

/* A key that was damaged on its way has no place in this rank's order. This looks at all keys, which NPB
 * does not, so it is not timed. */
static void refuse_foreign_keys(const sorting *s)
{
    const unsigned values = (unsigned)s->key_values;
    unsigned foreign = 0;
    for (int i = 0; i < s->received_keys; i++)
        foreign |= (unsigned)s->received[i] - s->smallest >= values;
    if (foreign)
        leave_at_once(program.name, "a rank received a key that is not in its buckets");
}

/* Count the keys that are not above each value: a key's rank is those not above the one below it. The
 * table's length is a power of two, so that a damaged key is counted somewhere in it: what that takes is
 * one instruction. */
static void rank_own_keys(sorting *s)
{
    size_t length = 1;
    while (length < s->key_values)
        length *= 2;
    if (length > s->value_room) {
        s->value_room = length;
        s->not_above = grown(s->not_above, length);
    }
    int *restrict of_value = s->not_above;
    const int *restrict received = s->received;
    const int received_keys = s->received_keys;
    const unsigned smallest = s->smallest, inside = (unsigned)(length - 1);
    memset(of_value, 0, s->key_values * sizeof *of_value);
    for (int i = 0; i < received_keys; i++)
        of_value[((unsigned)received[i] - smallest) & inside]++;
    for (size_t value = 1; value < s->key_values; value++)
        of_value[value] += of_value[value - 1];
}

/* Keep the ranks of the test keys that this rank has ranked; the others' stay 0. */
static void note_test_ranks(sorting *s, int iteration)
{
    for (int i = 0; i < IS_TEST_KEYS; i++) {
        const long long value = s->all_of_bucket[s->buckets + i] - (long long)s->smallest;
        long long *found = &s->test_rank[iteration][i];
        *found = 0;
        if (value >= 0 && value < (long long)s->key_values)
            *found = s->keys_below + (value > 0 ? s->not_above[value - 1] : 0);
    }
}

static void rank_keys(sorting *s, int iteration)
{
    if (s->rank == 0) {
        s->keys[iteration] = iteration;
        s->keys[iteration + IS_ITERATIONS] =
            (int)((1LL << s->reference->log2_largest_key) - iteration);
    }
    count_buckets(s);
    share_buckets(s);
    sort_into_buckets(s);
    exchange_keys(s);
    rank_own_keys(s);
    note_test_ranks(s, iteration);
}

/* Bring the keys into the order of their ranks; count how many are behind a larger one, and what the
 * keys that are gone or new sum up to: modulo 2^40, since those of class E sum up to 2^65. On rank 0. */
static void verify_order(sorting *s, verification *v)
{
    int *sorted = reserve(&program, (size_t)s->received_keys, sizeof *sorted);
    for (int i = 0; i < s->received_keys; i++)
        sorted[--s->not_above[(unsigned)s->received[i] - s->smallest]] = s->received[i];
    long long mine[3] = {0, s->received_keys, 0}, all[3] = {0};
    /* The largest key so far comes from the rank below. */
    int largest = -1;
    if (s->rank > 0)
        MPI_Recv(&largest, 1, MPI_INT, s->rank - 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < s->received_keys; i++) {
        mine[0] += sorted[i] < largest;
        mine[2] += sorted[i];
        largest = sorted[i];
    }
    if (s->rank + 1 < s->ranks)
        MPI_Send(&largest, 1, MPI_INT, s->rank + 1, 1, MPI_COMM_WORLD);
    for (int i = 0; i < s->own_keys; i++)
        mine[2] -= s->keys[i];
    mine[2] &= KEY_SUM_MASK;
    MPI_Reduce(mine, all, 3, MPI_LONG_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    free(sorted);
    if (s->rank != 0)
        return;
    verify_whole(v, "the number of keys after a larger one", all[0], 0);
    verify_whole(v, "the number of keys in order", all[1], 1LL << s->reference->log2_keys);
    verify_whole(v, "the sum of all keys in order less that of all keys", all[2] & KEY_SUM_MASK, 0);
}

static void verify_test_ranks(sorting *s, verification *v)
{
    const int count = (IS_ITERATIONS + 1) * IS_TEST_KEYS;
    long long found[IS_ITERATIONS + 1][IS_TEST_KEYS];
    MPI_Reduce(s->test_rank[0], found[0], count, MPI_LONG_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    for (int iteration = 1; s->rank == 0 && iteration <= IS_ITERATIONS; iteration++)
        for (int i = 0; i < IS_TEST_KEYS; i++) {
            const is_reference *r = s->reference;
            char what[80];
            snprintf(what, sizeof what, "in iteration %d the rank of key %lld", iteration,
                     r->test_index[i]);
            const int *lower = r->lower_from[i];
            const int drops = (lower[0] && iteration >= lower[0]) + (lower[1] && iteration >= lower[1]);
            verify_whole(v, what, found[iteration][i],
                         r->test_rank[i] + r->sign[i] * (iteration + r->offset[i]) - drops);
        }
}

static void set_up(sorting *s)
{
    const long long keys = 1LL << s->reference->log2_keys;
    complaint about;
    s->buckets = 1 << s->reference->log2_buckets;
    s->shift = s->reference->log2_largest_key - s->reference->log2_buckets;
    if (s->ranks > s->buckets) {
        complain(&about, "%d ranks for the %d buckets of class %s: at most one rank per bucket",
                 s->ranks, s->buckets, chosen_class);
        leave_together(program.name, about.text, EXIT_USAGE);
    }
    refuse_too_much(&program, demand_of_keys(s->reference, s->ranks, s->rank));
    s->first_key = first_of_part(keys, s->ranks, s->rank);
    s->own_keys = (int)(first_of_part(keys, s->ranks, s->rank + 1) - s->first_key);
    s->keys = reserve_huge(&program, (size_t)s->own_keys, sizeof *s->keys);
    s->sent = reserve_huge(&program, (size_t)s->own_keys, sizeof *s->sent);
    const size_t values = (size_t)(s->buckets + IS_TEST_KEYS), ranks = (size_t)s->ranks;
    s->mine_of_bucket = reserve(&program, values, sizeof *s->mine_of_bucket);
    s->all_of_bucket = reserve(&program, values, sizeof *s->all_of_bucket);
    s->start_of_bucket = reserve(&program, values, sizeof *s->start_of_bucket);
    s->first_bucket = reserve(&program, ranks + 1, sizeof *s->first_bucket);
    s->send_counts = reserve(&program, 4 * ranks, sizeof *s->send_counts);
    s->send_starts = s->send_counts + ranks;
    s->receive_counts = s->send_starts + ranks;
    s->receive_starts = s->receive_counts + ranks;
}

static void tear_down(sorting *s)
{
    int *numbers[] = {s->keys, s->sent, s->received, s->start_of_bucket, s->first_bucket,
                      s->send_counts, s->not_above};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        free(numbers[i]);
    free(s->mine_of_bucket);
    free(s->all_of_bucket);
}

/* Each iteration changes keys, so that without this the second time would rank others. */
static void begin_with_drawn_keys(void *solver)
{
    sorting *s = solver;
    draw_keys(s->reference, s->first_key, s->own_keys, s->keys);
    rank_keys(s, 1);
    refuse_foreign_keys(s);
}

static void rank_all_keys(void *solver)
{
    for (int iteration = 1; iteration <= IS_ITERATIONS; iteration++)
        rank_keys(solver, iteration);
}

static void verify(void *solver, verification *v)
{
    sorting *s = solver;
    refuse_foreign_keys(s);
    verify_test_ranks(s, v);
    verify_order(s, v);
}

int main(int argc, char **argv)
{
    begin_benchmark(&program, "IS", &argc, &argv);
    static sorting s;
    s.reference = &is_references[class_index()];
    MPI_Comm_rank(MPI_COMM_WORLD, &s.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &s.ranks);
    set_up(&s);
    const timed_part part = {begin_with_drawn_keys, rank_all_keys, verify};
    section_times times;
    verification verified = {0};
    time_section(&part, &s, &times, &verified);
    const long long keys = 1LL << s.reference->log2_keys;
    const run_summary summary = {.benchmark = "IS", .size = {keys}, .iterations = IS_ITERATIONS,
                                 .operations = (double)(IS_ITERATIONS * keys),
                                 .operation_type = "keys ranked"};
    tear_down(&s);
    end_benchmark(&program, &summary, &times, &verified);
}
