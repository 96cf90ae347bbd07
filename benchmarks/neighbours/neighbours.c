/* Time exchanges with the neighbours of a graph, by neighbourhood collectives and by messages of a
 * program's own. */
#include <limits.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "../common/buffers.h"
#include "../common/communication.h"
#include "../common/leaving.h"
#include "../common/options.h"
#include "exchange.h"

#define MOST_DEGREE 1000000

static const char *const operation_names[] = {"neighbour-allgather", "neighbour-alltoall", NULL};

static sampling plan;
static choice_list operations, methods, graphs;
static size_list sizes;
static long long degree, seed;

static const option options[] = {
    {.name = "operation", .kind = OPTION_CHOICES, .value = &operations, .initial = "all",
     .names = operation_names, .help = "one block for all neighbours, or one for each"},
    {.name = "method", .kind = OPTION_CHOICES, .value = &methods, .initial = "all",
     .names = method_names, .help = "by which calls"},
    {.name = "graph", .kind = OPTION_CHOICES, .value = &graphs, .initial = "ring",
     .names = graph_names, .help = "who the neighbours are"},
    {.name = "degree", .kind = OPTION_NUMBER, .value = &degree, .initial = "4", .least = 1,
     .most = MOST_DEGREE, .help = "of drawn: to how many others each rank sends, as far as there are"},
    {.name = "seed", .kind = OPTION_NUMBER, .value = &seed, .initial = "1", .least = 0,
     .most = LLONG_MAX, .help = "of drawn: what the neighbours follow from"},
    {.name = "sizes", .kind = OPTION_SIZES, .value = &sizes, .initial = "8",
     .help = "message sizes in bytes: each block"},
    SAMPLING_OPTIONS(plan, "100", "barrier"),
};

static const program_description program = {
    "neighbours",
    "neighbours: exchanges along the edges of a graph, in wyeast-records-2\n"
    "(benchmarks/FORMAT.md). Every rank sends to its neighbours and receives from those whose\n"
    "neighbour it is.\n",
    "mpiexec -n 4 neighbours --graph drawn --degree 2 --sizes 8 --sizes 8192",
    options, sizeof options / sizeof options[0]};

/* What this rank sends to another is its block number of that rank; one for all is number 0. */
static unsigned long long number_of(const exchange *e, unsigned long long n, int receiver)
{
    int ranks;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    return n * (unsigned)ranks + (e->one_block ? 0 : (unsigned)receiver);
}

static int own_rank(void)
{
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank;
}

static void prepare(void *context, unsigned long long n)
{
    const exchange *e = context;
    const int rank = own_rank();
    for (int i = 0; i < e->of.out; i++)
        fill_pattern(e->send + e->to_start[i], (size_t)e->to[i], number_of(e, n, e->of.to[i]), rank);
    for (int i = 0; i < e->of.in; i++)
        fill_wrong(e->receive + e->from_start[i], (size_t)e->from[i], number_of(e, n, rank),
                   e->of.from[i]);
}

static long long verify(void *context, unsigned long long n, complaint *about)
{
    const exchange *e = context;
    const int rank = own_rank();
    long long compared = 0;
    for (int i = 0; i < e->of.in; i++) {
        const long long wrong =
            find_difference(e->receive + e->from_start[i], (size_t)e->from[i],
                            number_of(e, n, rank), e->of.from[i]);
        if (wrong >= 0)
            return complain(about, "%s, %d bytes: rank %d has rank %d's data wrong from byte "
                                   "%lld on", e->method->name, e->from[i], rank, e->of.from[i], wrong);
        compared += e->from[i];
    }
    return compared;
}

/* Equal blocks; one for all neighbours stands once in the buffer that is sent. */
static void lay_out(exchange *e, size_t bytes)
{
    for (int i = 0; i < e->of.out; i++) {
        e->to[i] = (int)bytes;
        e->to_start[i] = e->one_block ? 0 : (int)bytes * i;
    }
    for (int i = 0; i < e->of.in; i++) {
        e->from[i] = (int)bytes;
        e->from_start[i] = (int)bytes * i;
    }
}

static void measure(exchange *e, const char *operation, const char *group, size_t bytes, int ranks)
{
    e->one_block = strcmp(operation, "neighbour-allgather") == 0;
    lay_out(e, bytes);
    if (e->method->open)
        e->method->open(e);
    verified_operation timed = {{.run = e->method->run, .context = e}, prepare, verify};
    communication about = {operation, e->method->name, group, ranks, bytes,
                           bytes * (unsigned long long)e->of.out};
    measure_communication(&program, &plan, &timed, &about);
    if (e->method->close)
        e->method->close(e);
}

static void measure_graph(exchange *e, const char *graph, int ranks)
{
    complaint group; /* A separate text, of the same length. */
    if (strcmp(graph, "drawn") == 0)
        complain(&group, "drawn %lld by seed %lld", degree, seed);
    else
        complain(&group, "%s", graph);
    make_graph(&e->of, &e->comm);
    for (size_t m = 0; m < methods.count; m++) {
        e->method = find_method(methods.names[m]);
        if (!e->method->run) {
            complaint about;
            complain(&about, "%s: this MPI has no such calls", e->method->name);
            leave_out(&program, about.text);
            continue;
        }
        for (size_t o = 0; o < operations.count; o++)
            for (size_t s = 0; s < sizes.count; s++)
                measure(e, operations.names[o], group.text, sizes.sizes[s], ranks);
    }
    MPI_Comm_free(&e->comm);
}

/* Reserve what the largest block needs on this rank. Returns 0, or -1 if memory ran out. */
static int reserve(exchange *e)
{
    const size_t block = largest_size(&sizes), in = (size_t)e->of.in, out = (size_t)e->of.out;
    e->send = page_aligned(block * out);
    e->receive = page_aligned(block * in);
    e->to = calloc(2 * (in + out) + 1, sizeof *e->to);
    e->requests = calloc(in + out + 1, sizeof(MPI_Request));
    if (!e->send || !e->receive || !e->to || !e->requests)
        return -1;
    e->to_start = e->to + out;
    e->from = e->to_start + out;
    e->from_start = e->from + in;
    return 0;
}

static void release(exchange *e)
{
    free_neighbours(&e->of);
    free(e->send);
    free(e->receive);
    free(e->to);
    free(e->requests);
}

/* A sentence where the arguments do not go with the world; else NULL. */
static const char *refusal(int ranks, complaint *about)
{
    if (ranks < 2)
        return "the world has one rank, and neighbours are at least 2";
    for (size_t s = 0; s < sizes.count; s++)
        if (sizes.sizes[s] > (size_t)INT_MAX / (size_t)ranks) {
            complain(about, "--sizes %zu: the places of %d ranks' blocks must be in an int",
                     sizes.sizes[s], ranks);
            return about->text;
        }
    return NULL;
}

int main(int argc, char **argv)
{
    begin_program(&program, &argc, &argv);
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    complaint about;
    const char *sentence = refusal(ranks, &about);
    if (sentence)
        leave_together(program.name, sentence, EXIT_USAGE);
    begin_output(&program);
    announce_points(&program,
                    operations.count * methods.count * graphs.count * sizes.count);
    for (size_t g = 0; g < graphs.count; g++) {
        exchange e = {0};
        if (find_neighbours(graphs.names[g], rank, ranks, (int)degree, (unsigned long long)seed,
                            &e.of) ||
            reserve(&e))
            leave_at_once(program.name, "no memory for messages of the requested sizes");
        measure_graph(&e, graphs.names[g], ranks);
        release(&e);
    }
    report_estimate(&plan);
    end_program(&program, communications_reported());
}
