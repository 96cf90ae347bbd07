/* The communication graph of an emulated application: who sends how much to whom in every step,
 * and how long each rank computes on average. */
#ifndef WYEAST_GRAPH_H
#define WYEAST_GRAPH_H

#include <stddef.h>

#include "../common/arguments.h"

/* No graph is larger, so that its counts fit in MPI's. */
#define MOST_GRAPH_RANKS 100000
#define MOST_EDGES ((size_t)1000000)

typedef struct {
    int from, to;
    size_t bytes;
    size_t line; /* Of the file that it stands in, for sentences; 0 where there is none. */
} edge;

typedef struct {
    int ranks;
    edge *edges; /* In the order of `from`, then of `to`. */
    size_t edge_count;
    double *compute_mean; /* Seconds, by rank. */
} graph;

/* The names of the graphs that the program knows, ended by NULL. */
extern const char *const graph_names[];

/* The fewest ranks that a known graph has; 0 where the name is unknown. */
int fewest_ranks(const char *name);

/* Build a known graph. Rank 0 is the application's master. Returns 0, or -1 with a sentence. */
int build_graph(const char *name, int ranks, size_t message_bytes, double compute_mean,
                graph *built, complaint *about);

/* Read a graph from the text of a file; `name` is the file's in sentences. A rank whose mean the
 * file does not say has `compute_mean`. Returns 0, or -1 with a sentence. */
int parse_graph(const char *name, const char *text, size_t length, double compute_mean,
                graph *parsed, complaint *about);

/* The bytes that all ranks send in one step; at most MOST_EDGES messages of MPI. */
unsigned long long step_bytes(const graph *graph);

/* Used by both ways to make a graph: -1 with a sentence where there is no memory. */
int reserve_ranks(graph *graph, int ranks, double compute_mean, complaint *about);
int add_edge(graph *graph, edge added, complaint *about);
void sort_edges(graph *graph);

void free_graph(graph *graph);

#endif
