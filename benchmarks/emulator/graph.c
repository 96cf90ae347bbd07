#include "graph.h"

#include <stdlib.h>
#include <string.h>

const char *const graph_names[] = {"client-server", "farm", "ring", "pipeline", "stencil", NULL};

int reserve_ranks(graph *graph, int ranks, double compute_mean, complaint *about)
{
    graph->compute_mean = calloc((size_t)ranks, sizeof *graph->compute_mean);
    if (!graph->compute_mean)
        return complain(about, "no memory for a graph of %d ranks", ranks);
    graph->ranks = ranks;
    for (int rank = 0; rank < ranks; rank++)
        graph->compute_mean[rank] = compute_mean;
    return 0;
}

int add_edge(graph *graph, edge added, complaint *about)
{
    const size_t count = graph->edge_count;
    /* The memory doubles whenever it is full, which is when the count is a power of two. */
    if ((count & (count - 1)) == 0) {
        edge *grown = realloc(graph->edges, (count ? 2 * count : 1) * sizeof *grown);
        if (!grown)
            return complain(about, "no memory for a graph of more than %zu edges", count);
        graph->edges = grown;
    }
    graph->edges[graph->edge_count++] = added;
    return 0;
}

static int compare_edges(const void *left, const void *right)
{
    const edge *a = left, *b = right;
    if (a->from != b->from)
        return a->from < b->from ? -1 : 1;
    if (a->to != b->to)
        return a->to < b->to ? -1 : 1;
    return (a->line > b->line) - (a->line < b->line);
}

void sort_edges(graph *graph)
{
    if (graph->edge_count)
        qsort(graph->edges, graph->edge_count, sizeof *graph->edges, compare_edges);
}

unsigned long long step_bytes(const graph *graph)
{
    unsigned long long sum = 0;
    for (size_t e = 0; e < graph->edge_count; e++)
        sum += graph->edges[e].bytes;
    return sum;
}

void free_graph(graph *graph)
{
    free(graph->edges);
    free(graph->compute_mean);
    memset(graph, 0, sizeof *graph);
}

static int connect_both_ways(graph *graph, int one, int other, size_t bytes, complaint *about)
{
    return add_edge(graph, (edge){one, other, bytes, 0}, about) ||
                   add_edge(graph, (edge){other, one, bytes, 0}, about)
               ? -1
               : 0;
}

/* The master talks with every other rank, and those only with it. */
static int connect_star(graph *graph, size_t bytes, complaint *about)
{
    for (int rank = 1; rank < graph->ranks; rank++)
        if (connect_both_ways(graph, 0, rank, bytes, about))
            return -1;
    return 0;
}

/* Each rank but the master sends to the next one. */
static int connect_chain(graph *graph, size_t bytes, complaint *about)
{
    for (int rank = 1; rank + 1 < graph->ranks; rank++)
        if (add_edge(graph, (edge){rank, rank + 1, bytes, 0}, about))
            return -1;
    return 0;
}

/* The ranks but the master form a grid, as square as their number allows, without a way around. */
static int connect_grid(graph *graph, size_t bytes, complaint *about)
{
    const int points = graph->ranks - 1;
    int rows = 1;
    for (int divisor = 1; divisor <= points / divisor; divisor++)
        if (points % divisor == 0)
            rows = divisor;
    const int columns = points / rows;
    for (int point = 0; point < points; point++) {
        if (point % columns + 1 < columns &&
            connect_both_ways(graph, 1 + point, 2 + point, bytes, about))
            return -1;
        if (point / columns + 1 < rows &&
            connect_both_ways(graph, 1 + point, 1 + point + columns, bytes, about))
            return -1;
    }
    return 0;
}

/* The master gives the message to the first of the other ranks and takes one from the last. */
static int connect_master(graph *graph, size_t bytes, complaint *about)
{
    return add_edge(graph, (edge){0, 1, bytes, 0}, about) ||
                   add_edge(graph, (edge){graph->ranks - 1, 0, bytes, 0}, about)
               ? -1
               : 0;
}

int fewest_ranks(const char *name)
{
    /* With one rank besides the master neither ring nor grid has an edge. */
    if (strcmp(name, "ring") == 0 || strcmp(name, "stencil") == 0)
        return 3;
    for (const char *const *known = graph_names; *known; known++)
        if (strcmp(name, *known) == 0)
            return 2;
    return 0;
}

int build_graph(const char *name, int ranks, size_t message_bytes, double compute_mean,
                graph *built, complaint *about)
{
    memset(built, 0, sizeof *built);
    if (reserve_ranks(built, ranks, compute_mean, about))
        return -1;
    int failed;
    if (strcmp(name, "client-server") == 0 || strcmp(name, "farm") == 0) {
        failed = connect_star(built, message_bytes, about);
    } else {
        failed = connect_master(built, message_bytes, about);
        if (strcmp(name, "stencil") == 0)
            failed = failed || connect_grid(built, message_bytes, about);
        else
            failed = failed || connect_chain(built, message_bytes, about);
        if (strcmp(name, "ring") == 0)
            failed = failed ||
                     add_edge(built, (edge){ranks - 1, 1, message_bytes, 0}, about);
    }
    /* A server computes the answers; any other master only hands out and collects. */
    if (strcmp(name, "client-server") != 0)
        built->compute_mean[0] = 0.0;
    sort_edges(built);
    if (failed)
        free_graph(built);
    return failed ? -1 : 0;
}
