/* Time a sparse exchange of randomly sized messages between random pairs of ranks: NASA's STS. */
#include <limits.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../common/buffers.h"
#include "../common/communication.h"
#include "../common/leaving.h"
#include "../common/options.h"
#include "interfaces.h"

#define MOST_MESSAGES 10000
enum { TAG = 1 };

static const char *const style_names[] = {"asynchronous", "synchronous", NULL};
static const char *const sided_names[] = {"single", "double", NULL};

static sampling plan;
static choice_list styles, sided;
static long long messages, seed, least_bytes, most_bytes;

static const option options[] = {
    {.name = "style", .kind = OPTION_CHOICES, .value = &styles, .initial = "asynchronous",
     .names = style_names,
     .help = "asynchronous: all receives are posted, then all is sent; synchronous: interface by"
             " interface"},
    {.name = "sided", .kind = OPTION_CHOICES, .value = &sided, .initial = "single",
     .names = sided_names, .help = "double: every pair also the other way, with another size"},
    {.name = "messages", .kind = OPTION_NUMBER, .value = &messages, .initial = "6", .least = 1,
     .most = MOST_MESSAGES, .help = "how many messages a rank sends on average"},
    {.name = "seed", .kind = OPTION_NUMBER, .value = &seed, .initial = "1", .least = 0,
     .most = UINT_MAX, .help = "of the random pairs and sizes: the same on every machine"},
    {.name = "least-bytes", .kind = OPTION_NUMBER, .value = &least_bytes, .initial = "0",
     .least = 0, .most = INT_MAX, .help = "the smallest message"},
    {.name = "most-bytes", .kind = OPTION_NUMBER, .value = &most_bytes, .initial = "262144",
     .least = 0, .most = INT_MAX,
     .help = "the largest message; NASA's example has 131,037 bytes on average"},
    SAMPLING_OPTIONS(plan, "100", "barrier"),
};

static const program_description program = {
    "some_to_some",
    "some_to_some: a sparse random exchange (NASA's STS), in wyeast-records-2\n"
    "(benchmarks/FORMAT.md).\n",
    "mpiexec -n 8 some_to_some --messages 6 --sided all --style all --seed 7",
    options, sizeof options / sizeof options[0]};

typedef struct {
    interfaces drawn;
    unsigned char *send, *receive;
    MPI_Request *requests;
    int rank;
} exchange;

/* Returns 0, or -1 where memory ran out. */
static int reserve_buffers(exchange *e)
{
    const size_t receives = e->drawn.receives;
    e->send = page_aligned(e->drawn.sent);
    e->receive = page_aligned(e->drawn.received);
    e->requests = calloc(receives ? receives : 1, sizeof(MPI_Request));
    return e->send && e->receive && e->requests ? 0 : -1;
}

static void release_buffers(exchange *e)
{
    free(e->send);
    free(e->receive);
    free(e->requests);
}

static void send_interface(const exchange *e, const interface *one)
{
    MPI_Send(e->send + one->offset, (int)one->bytes, MPI_BYTE, one->destination, TAG,
             MPI_COMM_WORLD);
}

static void receive_interface(const exchange *e, const interface *one, MPI_Request *request)
{
    MPI_Irecv(e->receive + one->offset, (int)one->bytes, MPI_BYTE, one->source, TAG,
              MPI_COMM_WORLD, request);
}

static void run_asynchronous(void *context)
{
    exchange *e = context;
    int posted = 0;
    for (size_t i = 0; i < e->drawn.count; i++)
        if (e->drawn.own[i].destination == e->rank)
            receive_interface(e, &e->drawn.own[i], &e->requests[posted++]);
    for (size_t i = 0; i < e->drawn.count; i++)
        if (e->drawn.own[i].source == e->rank)
            send_interface(e, &e->drawn.own[i]);
    MPI_Waitall(posted, e->requests, MPI_STATUSES_IGNORE);
}

/* All ranks go through the interfaces in one order, so no rank waits for one that waits for it. */
static void run_synchronous(void *context)
{
    const exchange *e = context;
    for (size_t i = 0; i < e->drawn.count; i++) {
        const interface *one = &e->drawn.own[i];
        if (one->source == e->rank)
            send_interface(e, one);
        else
            MPI_Recv(e->receive + one->offset, (int)one->bytes, MPI_BYTE, one->source, TAG,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

static void prepare(void *context, unsigned long long n)
{
    exchange *e = context;
    for (size_t i = 0; i < e->drawn.count; i++) {
        const interface *one = &e->drawn.own[i];
        if (one->source == e->rank)
            fill_pattern(e->send + one->offset, one->bytes, n + one->number, one->source);
        else
            fill_wrong(e->receive + one->offset, one->bytes, n + one->number, one->source);
    }
}

static long long verify(void *context, unsigned long long n, complaint *about)
{
    const exchange *e = context;
    long long compared = 0;
    for (size_t i = 0; i < e->drawn.count; i++) {
        const interface *one = &e->drawn.own[i];
        if (one->destination != e->rank)
            continue;
        long long wrong = find_difference(e->receive + one->offset, one->bytes, n + one->number,
                                          one->source);
        if (wrong >= 0)
            return complain(about, "message %zu, %zu bytes: rank %d has rank %d's data wrong from "
                                   "byte %lld on", one->number, one->bytes, e->rank, one->source,
                            wrong);
        compared += (long long)one->bytes;
    }
    return compared;
}

static void measure(const char *style, const char *sides, int ranks)
{
    exchange e = {0};
    MPI_Comm_rank(MPI_COMM_WORLD, &e.rank);
    const drawing how = {.seed = (uint64_t)seed, .ranks = ranks, .messages = (size_t)messages,
                         .least_bytes = (size_t)least_bytes, .most_bytes = (size_t)most_bytes,
                         .is_double = strcmp(sides, "double") == 0};
    if (draw_interfaces(&how, e.rank, &e.drawn))
        leave_at_once(program.name, "no memory for the list of messages");
    if (reserve_buffers(&e))
        leave_at_once(program.name, "no memory for the messages");
    char method[80], group[80];
    snprintf(method, sizeof method, "%s %s-sided", style, sides);
    snprintf(group, sizeof group, "world, %lld messages a rank, seed %lld", messages, seed);
    const int is_asynchronous = strcmp(style, "asynchronous") == 0;
    verified_operation operation = {
        {.run = is_asynchronous ? run_asynchronous : run_synchronous, .context = &e},
        prepare, verify};
    communication about = {"some-to-some", method, group, ranks,
                           (size_t)(e.drawn.bytes_of_all / e.drawn.of_all), e.drawn.sent};
    measure_communication(&program, &plan, &operation, &about);
    release_buffers(&e);
    free_interfaces(&e.drawn);
}

int main(int argc, char **argv)
{
    begin_program(&program, &argc, &argv);
    int ranks;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks < 2)
        leave_together(program.name, "the world has one rank, and an exchange needs at least 2",
                       EXIT_USAGE);
    complaint about;
    if (most_bytes < least_bytes) {
        complain(&about, "--most-bytes %lld: less than --least-bytes %lld", most_bytes,
                 least_bytes);
        leave_together(program.name, about.text, EXIT_USAGE);
    }
    begin_output(&program);
    announce_points(&program, styles.count * sided.count);
    for (size_t s = 0; s < sided.count; s++)
        for (size_t t = 0; t < styles.count; t++)
            measure(styles.names[t], sided.names[s], ranks);
    report_estimate(&plan);
    end_program(&program, communications_reported());
}
