/* pingpong: the time of round trips between two ranks, for each send/receive pair of Kearns 2003,
 * Table 10, and each message size; also of messages that are out of the cache or strided, as
 * mpptest's. Output: benchmarks/FORMAT.md. */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../common/buffers.h"
#include "../common/clock.h"
#include "../common/leaving.h"
#include "../common/memory_copy.h"
#include "../common/estimate.h"
#include "../common/options.h"
#include "../common/progress.h"
#include "../common/records.h"
#include "../common/refinement.h"
#include "exchange.h"

#define MOST_ITERATIONS 10000000LL
#define LARGEST_CACHE (1LL << 40)
#define LARGEST_STRIDE (1LL << 24)
#define MOST_ADDED 1000
#define LEAST_GAP 4
/* A strided message is made of these. */
#define ELEMENT sizeof(double)
/* Less than any part of the line that a time may be off. */
#define EVERYTHING_BENDS (-1.0)
/* A time of which only this is needed. */
#define NO_TIME 1.0

static const char *const order_names[] = {"modified", "original", NULL};

static choice_list pairs;
static size_list sizes;
static const char *order_name;
static long long iterations, warmup, cache_bytes, stride_bytes;
static double refine_tolerance;
static int raw, estimate;

static const option options[] = {
    {.name = "pair", .kind = OPTION_CHOICES, .value = &pairs, .initial = "Send/Recv",
     .names = pair_names, .help = "a send/receive pair"},
    {.name = "order", .kind = OPTION_CHOICE, .value = &order_name, .initial = "modified",
     .names = order_names,
     .help = "modified: the echoing rank waits for the message before it replies; original: it\n"
             "      replies first, which overstates bandwidth where the receive is non-blocking\n"
             "      (Kearns 2003, section 4.3.1)"},
    {.name = "sizes", .kind = OPTION_SIZES, .value = &sizes, .initial = "300:4800:300",
     .help = "message sizes in bytes"},
    {.name = "refine", .kind = OPTION_FRACTION, .value = &refine_tolerance, .initial = "0",
     .most = 10,
     .help = "also time sizes between two where the time is off their line by this fraction;\n"
             "      0: none"},
    {.name = "iterations", .kind = OPTION_NUMBER, .value = &iterations, .initial = "100",
     .least = 1, .most = MOST_ITERATIONS, .help = "timed round trips for each pair and size"},
    {.name = "warmup", .kind = OPTION_NUMBER, .value = &warmup, .initial = "10", .least = 0,
     .most = MOST_ITERATIONS, .help = "untimed round trips before them"},
    {.name = "cache-bytes", .kind = OPTION_NUMBER, .value = &cache_bytes, .initial = "0",
     .least = 0, .most = LARGEST_CACHE,
     .help = "send each message from another place in this many bytes, so that none is in a cache"},
    {.name = "stride-bytes", .kind = OPTION_NUMBER, .value = &stride_bytes, .initial = "0",
     .least = 0, .most = LARGEST_STRIDE,
     .help = "send doubles that are this many bytes apart, as a derived datatype; 0: contiguous"},
    {.name = "raw", .kind = OPTION_FLAG, .value = &raw,
     .help = "also print the time of every iteration"},
    ESTIMATE_OPTION(estimate),
};

static const program_description program = {
    "pingpong",
    "pingpong: time round trips of messages between two ranks, in wyeast-records-2\n"
    "(benchmarks/FORMAT.md). A time is that of a whole round trip. The data of both directions\n"
    "is verified in an untimed pass for each pair and size.\n",
    "mpiexec -n 2 pingpong --pair all --sizes 5000:100000:5000 --iterations 100",
    options, sizeof options / sizeof options[0]};

/* Where messages lie: one after another in `room` bytes, each `extent` long with its gaps. */
typedef struct {
    const send_receive_pair *pair;
    echo_order order;
    int rank;
    unsigned char *send, *receive;
    size_t room;
    double *times, *scratch;
    size_t results;
    progress done;
    sweep_estimate estimated;
    double slowest_point; /* Of --estimate. */
} pingpong;

static size_t extent_of(size_t bytes)
{
    if (!stride_bytes || !bytes)
        return bytes;
    return (bytes / ELEMENT - 1) * (size_t)stride_bytes + ELEMENT;
}

/* The place in the buffer of the byte at an offset of the message. */
static size_t place_of(size_t offset)
{
    return stride_bytes ? offset / ELEMENT * (size_t)stride_bytes + offset % ELEMENT : offset;
}

/* From one message's place to the next: each begins with a cache line, so that all are aligned alike. */
static size_t step_of(size_t bytes)
{
    const size_t line = 64;
    return (extent_of(bytes) + line) / line * line;
}

/* How many places messages go from. */
static size_t places_of(const pingpong *p, size_t bytes)
{
    return cache_bytes ? p->room / step_of(bytes) : 1;
}

/* The n-th message goes from another place than the one before, where there is room. */
static message message_at(const pingpong *p, size_t bytes, MPI_Datatype type, size_t n)
{
    const size_t offset = n % places_of(p, bytes) * step_of(bytes);
    return (message){p->send + offset, p->receive + offset, stride_bytes ? 1 : (int)bytes, type};
}

static void make_type(size_t bytes, MPI_Datatype *type)
{
    *type = MPI_BYTE;
    if (!stride_bytes)
        return;
    MPI_Type_vector((int)(bytes / ELEMENT), 1, (int)((size_t)stride_bytes / ELEMENT), MPI_DOUBLE,
                    type);
    MPI_Type_commit(type);
}

static void round_trip(const pingpong *p, const message *message)
{
    if (p->rank == 0)
        send_and_await(p->pair, message);
    else
        echo(p->pair, p->order, message);
}

/* The first byte of a received message that is wrong after an untimed round trip, or -1. */
static long long first_wrong(const pingpong *p, size_t bytes, const message *message,
                             unsigned long long number)
{
    for (size_t i = 0; i < bytes; i++) {
        message->send[place_of(i)] = pattern(i, number, p->rank);
        message->receive[place_of(i)] = (unsigned char)~pattern(i, number, 1 - p->rank);
    }
    round_trip(p, message);
    for (size_t i = 0; i < bytes; i++)
        if (message->receive[place_of(i)] != pattern(i, number, 1 - p->rank))
            return (long long)i;
    return -1;
}

/* Untimed round trips whose data both ranks compare, one from each place that timed messages go from.
 * Afterwards the places are as far out of the cache as before. Collective. */
static void verify(const pingpong *p, size_t bytes, MPI_Datatype type)
{
    const size_t messages = (size_t)warmup + (size_t)iterations, room = places_of(p, bytes);
    const size_t places = messages < room ? messages : room;
    long long wrong = -1, all[2];
    for (size_t n = 0; n < places; n++) {
        const message message = message_at(p, bytes, type, n);
        const long long found = first_wrong(p, bytes, &message,
                                            ((unsigned long long)p->results << 32) + n);
        wrong = wrong < 0 ? found : wrong;
    }
    if (cache_bytes) {
        scrub(p->send, p->room);
        scrub(p->receive, p->room);
    }
    MPI_Allgather(&wrong, 1, MPI_LONG_LONG_INT, all, 1, MPI_LONG_LONG_INT, MPI_COMM_WORLD);
    for (int receiver = 0; receiver < 2; receiver++)
        if (all[receiver] >= 0) {
            char sentence[200];
            snprintf(sentence, sizeof sentence,
                     "%s, %zu bytes: rank %d received wrong data from byte %lld on", p->pair->name,
                     bytes, receiver, all[receiver]);
            leave_together(program.name, sentence, EXIT_FAILED);
        }
}

static void time_round_trips(const pingpong *p, size_t bytes, MPI_Datatype type, size_t untimed,
                             size_t timed)
{
    const size_t all = untimed + timed;
    MPI_Barrier(MPI_COMM_WORLD);
    for (size_t i = 0; i < all; i++) {
        const message message = message_at(p, bytes, type, i);
        double began = seconds_now();
        round_trip(p, &message);
        if (i >= untimed)
            p->times[i - untimed] = seconds_now() - began;
    }
}

static void print_key(const char *record, const pingpong *p, size_t bytes)
{
    printf("{\"record\":\"%s\",\"operation\":\"pingpong\",\"pair\":\"%s\",\"order\":\"%s\","
           "\"message_bytes\":%zu", record, p->pair->name, order_name, bytes);
}

/* Returns the median. */
static double print_result(const pingpong *p, size_t bytes)
{
    time_summary summary = summarise(p->times, (size_t)iterations, p->scratch);
    print_key("result", p, bytes);
    printf(",\"iterations\":%lld,\"warmup\":%lld,\"time_s\":", iterations, warmup);
    print_summary(stdout, &summary);
    printf(",\"verified_bytes\":%zu,\"memory_copy_s\":", 2 * bytes);
    print_seconds(stdout, best_copy_time(p->receive, p->send, bytes));
    fputs("}\n", stdout);
    if (!raw)
        return summary.median;
    print_key("iterations", p, bytes);
    fputs(",\"time_s\":[", stdout);
    for (size_t i = 0; i < (size_t)iterations; i++) {
        fputs(i ? "," : "", stdout);
        print_seconds(stdout, p->times[i]);
    }
    fputs("]}\n", stdout);
    return summary.median;
}

/* The same of a few round trips, after a verification that has taken so long. */
static void estimate_round_trips(pingpong *p, size_t bytes, MPI_Datatype type, double verifying)
{
    const size_t timed = (size_t)few_iterations(iterations);
    time_round_trips(p, bytes, type, (size_t)few_warmups(warmup), timed);
    const double all = (double)warmup + (double)iterations;
    const double copying = seconds_now();
    if (p->rank == 0)
        (void)best_copy_time(p->receive, p->send, bytes);
    const double once = verifying + seconds_now() - copying;
    const double each = summarise(p->times, timed, p->scratch).median;
    estimate_point(&p->estimated, once, each, all, all);
    p->slowest_point = fmax(p->slowest_point, once + each * all);
}

/* Verify, time and report one size; returns the median on rank 0. Collective. */
static double measure(void *context, size_t bytes)
{
    pingpong *p = context;
    MPI_Datatype type;
    double time = 0.0, began = seconds_now();
    make_type(bytes, &type);
    verify(p, bytes, type);
    if (estimate) {
        estimate_round_trips(p, bytes, type, seconds_now() - began);
        time = NO_TIME;
    } else {
        time_round_trips(p, bytes, type, (size_t)warmup, (size_t)iterations);
        p->results++;
        time = p->rank == 0 ? print_result(p, bytes) : 0.0;
    }
    if (type != MPI_BYTE)
        MPI_Type_free(&type);
    if (p->rank == 0)
        count_part(&p->done);
    return time;
}

static double measure_added(void *context, size_t bytes)
{
    ((pingpong *)context)->done.all++;
    return measure(context, bytes);
}

static double measure_nothing(void *context, size_t bytes)
{
    (void)context, (void)bytes;
    return NO_TIME;
}

/* Refine what was measured. How many sizes come between is known by the times only: an estimate
 * has as many as there are room for. */
static void refine_sizes(pingpong *p, const double *medians)
{
    refinement how = {refine_tolerance, stride_bytes ? ELEMENT : LEAST_GAP, MOST_ADDED};
    if (!estimate) {
        refine(&how, sizes.sizes, medians, sizes.count, measure_added, p);
        return;
    }
    how.tolerance = EVERYTHING_BENDS;
    const size_t most = refine(&how, sizes.sizes, medians, sizes.count, measure_nothing, NULL);
    estimate_possible_points(&p->estimated, most, p->slowest_point);
}

/* A sentence where the arguments do not go together or with the world; else NULL. */
static const char *refusal(int ranks, complaint *about)
{
    if (ranks != 2) {
        complain(about, "the world has %d rank(s), and a ping-pong needs exactly 2: start it with "
                        "mpiexec -n 2 (and the mpiexec of the MPI it was built with)", ranks);
        return about->text;
    }
    if (stride_bytes % (long long)ELEMENT) {
        complain(about, "--stride-bytes %lld: not a multiple of %zu bytes, a double", stride_bytes,
                 ELEMENT);
        return about->text;
    }
    for (size_t s = 0; s < sizes.count; s++) {
        if (stride_bytes && sizes.sizes[s] % ELEMENT) {
            complain(about, "--sizes %zu: not a multiple of %zu bytes, and --stride-bytes sends "
                            "doubles", sizes.sizes[s], ELEMENT);
            return about->text;
        }
        if (refine_tolerance > 0 && s > 0 && sizes.sizes[s] <= sizes.sizes[s - 1])
            return "--refine: the sizes must ascend";
    }
    return NULL;
}

int main(int argc, char **argv)
{
    begin_program(&program, &argc, &argv);
    pingpong p = {.order = strcmp(order_name, "original") == 0 ? ORDER_ORIGINAL : ORDER_MODIFIED};
    int ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &p.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    complaint about;
    const char *sentence = refusal(ranks, &about);
    if (sentence)
        leave_together(program.name, sentence, EXIT_USAGE);

    /* The largest, and a cache line for its alignment; out of the cache two of them at least. */
    p.room = (cache_bytes ? 2 : 1) * (extent_of(largest_size(&sizes)) + 64);
    if ((size_t)cache_bytes > p.room)
        p.room = (size_t)cache_bytes;
    p.send = page_aligned(p.room);
    p.receive = page_aligned(p.room);
    p.times = calloc((size_t)iterations, sizeof *p.times);
    p.scratch = calloc((size_t)iterations, sizeof *p.scratch);
    double *medians = calloc(sizes.count, sizeof *medians);
    if (!p.send || !p.receive || !p.times || !p.scratch || !medians)
        leave_at_once(program.name, "no memory for the requested messages and iterations");
    begin_output(&program);
    begin_progress(&p.done, program.name, "points", pairs.count * sizes.count, seconds_now);
    for (size_t i = 0; i < pairs.count; i++) {
        p.pair = find_pair(pairs.names[i]);
        for (size_t s = 0; s < sizes.count; s++)
            medians[s] = measure(&p, sizes.sizes[s]);
        if (refine_tolerance > 0)
            refine_sizes(&p, medians);
    }
    if (estimate && p.rank == 0)
        print_estimate(&p.estimated);
    free(medians);
    free(p.scratch);
    free(p.times);
    free(p.receive);
    free(p.send);
    end_program(&program, p.results);
}
