/* The streams of DT: four numbers at each of many points, which nodes of a graph draw, filter and
 * weigh. NASA's program is the only specification; its integers of 32 bits are kept, since its
 * published checksums depend on them. */
#ifndef WYEAST_STREAMS_H
#define WYEAST_STREAMS_H

#include <stddef.h>

#include "reference_values.h"

enum { FIELDS = 4 };

typedef struct {
    int length; /* A multiple of FIELDS. */
    double *values;
} stream;

/* The numbers that any stream of the class has at most. */
size_t longest_stream(const dt_reference *reference);

/* Draw a source's stream. */
void draw_stream(const dt_reference *reference, int node, stream *drawn);

/* Begin a stream that others are filtered into. */
void clear_stream(const dt_reference *reference, stream *cleared);

/* Take the other stream's nearest points into this one, as node so and so weighs them. The shorter
 * one is made as long as the other; `room` has space for the longest, and may be exchanged with it. */
void filter_stream(stream *one, stream *other, double **room, int node);

/* Make all numbers whole and divide them, by the number of streams that were filtered in. */
void share_stream(stream *filtered, int streams);

/* The mean square of a stream's numbers, weighted and made whole. */
long long strength_of(const stream *received, int weight);

#endif
