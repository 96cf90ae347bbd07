/* The graphs of DT, whose nodes are ranks: streams go along the arcs, from sources to sinks. */
#ifndef WYEAST_TRAFFIC_H
#define WYEAST_TRAFFIC_H

/* At most so many arcs come to a node, or leave it. */
enum { MOST_ARCS = 4 };

typedef struct {
    int kind, sources; /* BLACK_HOLE, WHITE_HOLE or SHUFFLE; the streams at its wide end. */
    int nodes, arcs;
} traffic;

/* - A black hole brings the streams of all sources to one sink, four at a time.
 * - A white hole is its mirror: one source, and as many sinks.
 * - A shuffle has as many sinks as sources, a power of two, and exchanges like a fast Fourier transform
 *   between them. */
traffic make_traffic(int kind, int sources);

/* The nodes from which arcs come to a node, in their order, and to which they leave it. Returns how many:
 * none come to a source, and none leave a sink. */
int nodes_before(const traffic *t, int node, int before[MOST_ARCS]);
int nodes_after(const traffic *t, int node, int after[MOST_ARCS]);

#endif
