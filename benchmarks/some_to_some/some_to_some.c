/* Time a sparse exchange of randomly sized messages between random pairs of ranks: NASA's STS. */
#include <limits.h>
#include <mpi.h>
#include <stdio.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../common/buffers.h"
#include "../common/communication.h"
#include "../common/leaving.h"
#include "../common/options.h"
#include "../common/split_mix.h"

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

/* One message of the exchange. */
typedef struct {
    int source, destination;
    size_t bytes, offset; /* Where it begins in the sender's and in the receiver's buffer. */
} interface;

typedef struct {
    interface *interfaces;
    size_t count;
    unsigned char *send, *receive;
    MPI_Request *requests;
    int rank;
} exchange;

/* A whole number below `limit`, each equally likely: what would favour the small ones is dropped. */
static unsigned long long below(uint64_t *state, unsigned long long limit)
{
    const unsigned long long unfair = ULLONG_MAX % limit;
    unsigned long long number;
    do
        number = next_number(state);
    while (number >= ULLONG_MAX - unfair);
    return number % limit;
}

static size_t random_size(uint64_t *state)
{
    return (size_t)least_bytes +
           (size_t)below(state, (unsigned long long)(most_bytes - least_bytes) + 1);
}

/* Draw the interfaces: every rank draws all of them, so nobody has to be told. */
static void draw_interfaces(exchange *e, int ranks, int is_double)
{
    uint64_t state = (uint64_t)seed;
    const size_t drawn = (size_t)messages * (size_t)ranks;
    for (size_t i = 0; i < drawn; i++) {
        interface *one = &e->interfaces[i];
        one->source = (int)below(&state, (unsigned)ranks);
        one->destination = (int)below(&state, (unsigned)ranks - 1);
        one->destination += one->destination >= one->source;
        one->bytes = random_size(&state);
    }
    e->count = drawn;
    if (!is_double)
        return;
    for (size_t i = 0; i < drawn; i++)
        e->interfaces[drawn + i] = (interface){
            e->interfaces[i].destination, e->interfaces[i].source, random_size(&state), 0};
    e->count = 2 * drawn;
}

/* Lay out this rank's messages one after another. Returns 0, or -1 where memory ran out. */
static int reserve_buffers(exchange *e)
{
    size_t sent = 0, received = 0, receives = 0;
    for (size_t i = 0; i < e->count; i++) {
        interface *one = &e->interfaces[i];
        size_t *used = one->source == e->rank ? &sent : &received;
        if (one->source != e->rank && one->destination != e->rank)
            continue;
        one->offset = *used;
        if (one->bytes > SIZE_MAX / 2 - *used)
            return -1;
        *used += one->bytes;
        receives += one->destination == e->rank;
    }
    e->send = page_aligned(sent);
    e->receive = page_aligned(received);
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

static void run_asynchronous(void *context)
{
    exchange *e = context;
    int posted = 0;
    for (size_t i = 0; i < e->count; i++)
        if (e->interfaces[i].destination == e->rank)
            MPI_Irecv(e->receive + e->interfaces[i].offset, (int)e->interfaces[i].bytes, MPI_BYTE,
                      e->interfaces[i].source, TAG, MPI_COMM_WORLD, &e->requests[posted++]);
    for (size_t i = 0; i < e->count; i++)
        if (e->interfaces[i].source == e->rank)
            send_interface(e, &e->interfaces[i]);
    MPI_Waitall(posted, e->requests, MPI_STATUSES_IGNORE);
}

/* All ranks go through the interfaces in one order, so no rank waits for one that waits for it. */
static void run_synchronous(void *context)
{
    const exchange *e = context;
    for (size_t i = 0; i < e->count; i++) {
        const interface *one = &e->interfaces[i];
        if (one->source == e->rank)
            send_interface(e, one);
        if (one->destination == e->rank)
            MPI_Recv(e->receive + one->offset, (int)one->bytes, MPI_BYTE, one->source, TAG,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

static void prepare(void *context, unsigned long long n)
{
    exchange *e = context;
    for (size_t i = 0; i < e->count; i++) {
        const interface *one = &e->interfaces[i];
        if (one->source == e->rank)
            fill_pattern(e->send + one->offset, one->bytes, n + i, one->source);
        if (one->destination == e->rank)
            fill_wrong(e->receive + one->offset, one->bytes, n + i, one->source);
    }
}

static long long verify(void *context, unsigned long long n, complaint *about)
{
    const exchange *e = context;
    long long compared = 0;
    for (size_t i = 0; i < e->count; i++) {
        const interface *one = &e->interfaces[i];
        if (one->destination != e->rank)
            continue;
        long long wrong = find_difference(e->receive + one->offset, one->bytes, n + i,
                                          one->source);
        if (wrong >= 0)
            return complain(about, "message %zu, %zu bytes: rank %d has rank %d's data wrong from "
                                   "byte %lld on", i, one->bytes, e->rank, one->source, wrong);
        compared += (long long)one->bytes;
    }
    return compared;
}

static void measure(const char *style, const char *sides, int ranks)
{
    exchange e = {0};
    MPI_Comm_rank(MPI_COMM_WORLD, &e.rank);
    const int is_double = strcmp(sides, "double") == 0;
    e.interfaces = calloc((size_t)messages * (size_t)ranks * (is_double ? 2 : 1),
                          sizeof *e.interfaces);
    if (!e.interfaces)
        leave_at_once(program.name, "no memory for the list of messages");
    draw_interfaces(&e, ranks, is_double);
    if (reserve_buffers(&e))
        leave_at_once(program.name, "no memory for the messages");
    unsigned long long mine = 0, all = 0;
    for (size_t i = 0; i < e.count; i++) {
        all += e.interfaces[i].bytes;
        mine += e.interfaces[i].source == e.rank ? e.interfaces[i].bytes : 0;
    }
    char method[80], group[80];
    snprintf(method, sizeof method, "%s %s-sided", style, sides);
    snprintf(group, sizeof group, "world, %lld messages a rank, seed %lld", messages, seed);
    const int is_asynchronous = strcmp(style, "asynchronous") == 0;
    verified_operation operation = {
        {.run = is_asynchronous ? run_asynchronous : run_synchronous, .context = &e},
        prepare, verify};
    communication about = {"some-to-some", method, group, ranks, (size_t)(all / e.count), mine};
    measure_communication(&program, &plan, &operation, &about);
    release_buffers(&e);
    free(e.interfaces);
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
