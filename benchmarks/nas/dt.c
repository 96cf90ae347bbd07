/* DT: data traffic. Each node of a graph is a rank; streams of numbers go from its sources to its sinks,
 * and nodes between them filter several streams into one. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "benchmark.h"
#include "streams.h"
#include "traffic.h"

enum { LENGTH_TAG = 1, VALUES_TAG = 2, CHECKSUM_TAG = 3 };

/* The larger classes of NPB have no published values, so that nothing would be proved of them. */
static const char *const class_names_of_dt[] = {"S", "W", "A", "B", NULL};
static const char *const graphs[] = {"BH", "WH", "SH", NULL};
static const char *const names[] = {"DT_BH", "DT_WH", "DT_SH"};
static const char *chosen_graph;
static const option options[] = {
    CLASS_OPTION_OF(class_names_of_dt), REPETITION_OPTION,
    {.name = "graph", .kind = OPTION_CHOICE, .value = &chosen_graph, .initial = "BH",
     .names = graphs, .help = "black hole (all sources to one sink), white hole (one source to all "
                              "sinks) or shuffle"}};
static const program_description program = {
    "nas_dt",
    "nas_dt: DT of the NAS Parallel Benchmarks, with NPB's summary lines.\n"
    "As many ranks as the graph has nodes, or more, which are idle. BH and WH have 5 nodes in class S,\n"
    "11 in W, 21 in A and 43 in B; SH has 12, 32, 80 and 192.\n",
    "mpiexec -n 5 nas_dt --class S --graph BH", options, sizeof options / sizeof options[0]};

typedef struct {
    const dt_reference *reference;
    traffic graph;
    int kind, rank;
    int before[MOST_ARCS], after[MOST_ARCS], befores, afters;
    stream own, received;
    double *room;       /* For a stream that is stretched. */
    long long checksum; /* On rank 0, of all sinks. */
} traffic_node;

static void receive(traffic_node *n, int from)
{
    MPI_Recv(&n->received.length, 1, MPI_INT, from, LENGTH_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    const int length = n->received.length;
    if (length < 2 * FIELDS || (size_t)length > longest_stream(n->reference) || length % FIELDS)
        leave_at_once(program.name, "a stream was announced with a length that none has");
    MPI_Recv(n->received.values, length, MPI_DOUBLE, from, VALUES_TAG, MPI_COMM_WORLD,
             MPI_STATUS_IGNORE);
}

static void send_on(traffic_node *n)
{
    for (int i = 0; i < n->afters; i++) {
        MPI_Send(&n->own.length, 1, MPI_INT, n->after[i], LENGTH_TAG, MPI_COMM_WORLD);
        MPI_Send(n->own.values, n->own.length, MPI_DOUBLE, n->after[i], VALUES_TAG, MPI_COMM_WORLD);
    }
}

static void filter_all(traffic_node *n)
{
    clear_stream(n->reference, &n->own);
    for (int i = 0; i < n->befores; i++) {
        receive(n, n->before[i]);
        filter_stream(&n->own, &n->received, &n->room, n->rank);
    }
    share_stream(&n->own, n->befores);
}

static void weigh_all(traffic_node *n)
{
    long long sum = 0;
    for (int i = 0; i < n->befores; i++) {
        receive(n, n->before[i]);
        sum += strength_of(&n->received, n->rank + 1);
    }
    sum = sum / n->befores * (n->rank + 1);
    MPI_Send(&sum, 1, MPI_LONG_LONG, 0, CHECKSUM_TAG, MPI_COMM_WORLD);
}

static void collect(traffic_node *n)
{
    int none[MOST_ARCS];
    n->checksum = 0;
    for (int node = 0; node < n->graph.nodes; node++) {
        long long one = 0;
        if (nodes_after(&n->graph, node, none) > 0)
            continue;
        MPI_Recv(&one, 1, MPI_LONG_LONG, node, CHECKSUM_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        n->checksum += one;
    }
}

/* As in NPB, what a source draws is a part of the time. */
static void pass_streams(void *solver)
{
    traffic_node *n = solver;
    if (n->rank >= n->graph.nodes)
        return;
    if (n->befores == 0)
        draw_stream(n->reference, n->rank, &n->own);
    if (n->afters == 0) {
        weigh_all(n);
    } else {
        if (n->befores > 0)
            filter_all(n);
        send_on(n);
    }
    if (n->rank == 0)
        collect(n);
}

static void verify(void *solver, verification *v)
{
    const traffic_node *n = solver;
    if (n->rank == 0)
        verify_whole(v, "the checksum", n->checksum,
                     (long long)n->reference->checksum[n->kind]);
}

static void set_up(traffic_node *n)
{
    int ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &n->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    while (strcmp(graphs[n->kind], chosen_graph) != 0)
        n->kind++;
    n->graph = make_traffic(n->kind, n->reference->sources);
    if (ranks < n->graph.nodes) {
        complaint about;
        complain(&about, "%d rank(s) for the %d nodes of graph %s in class %s: at least one rank per "
                 "node", ranks, n->graph.nodes, chosen_graph, chosen_class);
        leave_together(program.name, about.text, EXIT_USAGE);
    }
    const size_t longest = longest_stream(n->reference);
    const int is_idle = n->rank >= n->graph.nodes;
    const double most = is_idle ? 0.0 : (double)longest;
    refuse_too_much(&program, (demand){3.0 * most * sizeof(double), most});
    if (is_idle)
        return;
    n->befores = nodes_before(&n->graph, n->rank, n->before);
    n->afters = nodes_after(&n->graph, n->rank, n->after);
    n->own.values = reserve(&program, longest, sizeof(double));
    n->received.values = reserve(&program, longest, sizeof(double));
    n->room = reserve(&program, longest, sizeof(double));
}

int main(int argc, char **argv)
{
    begin_benchmark(&program, "DT", &argc, &argv);
    static traffic_node n;
    n.reference = &dt_references[class_index()];
    set_up(&n);
    pass_streams(&n); /* Untimed. */
    const timed_part part = {.section = pass_streams, .verify = verify};
    section_times times;
    verification verified = {0};
    time_section(&part, &n, &times, &verified);
    /* NPB counts the numbers of a mean stream on every arc, and calls 2^20 of them a million; where it
     * prints iterations it has the graph's nodes. */
    const double numbers = (double)FIELDS * n.reference->samples;
    const run_summary summary = {.benchmark = names[n.kind], .size = {(long long)numbers},
                                 .iterations = n.graph.nodes,
                                 .operations = numbers * n.graph.arcs * 1e6 / 1048576.0,
                                 .operation_type = "bytes transmitted"};
    free(n.own.values);
    free(n.received.values);
    free(n.room);
    end_benchmark(&program, &summary, &times, &verified);
}
