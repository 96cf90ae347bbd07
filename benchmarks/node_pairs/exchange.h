/* Messages between two ranks of different nodes: proved, and timed by the one that begins. */
#ifndef WYEAST_NODE_PAIRS_EXCHANGE_H
#define WYEAST_NODE_PAIRS_EXCHANGE_H

#include <mpi.h>
#include <stddef.h>

#include "../common/arguments.h"
#include "../common/summary.h"

/* Of latency the bytes of a message; of bandwidth also how many are under way at once. */
typedef struct {
    size_t bytes, messages, iterations;
} amount;

typedef enum { LATENCY, BANDWIDTH, MEASURES } measure;

typedef struct {
    int rank, partner;
    int is_polite; /* Whether ranks that wait for messages let others use their cores. */
    unsigned char *send, *receive; /* Room for all messages of any amount. */
    MPI_Request *requests;         /* As many as there are messages. */
    double *times, *scratch;       /* As many as there are iterations. */
} meeting;

/* Send each other patterns of verification n, untimed, which is also the warm-up; compare what came.
 * Returns the bytes that this rank compared, or -1 with a sentence. */
long long prove_meeting(const meeting *m, const amount *what, unsigned long long n,
                        complaint *about);

/* Time iterations: round trips, or messages one way and an empty answer. Both ranks call it, one of
 * them as the one that begins; what it returns is of use there alone. */
time_summary time_meeting(const meeting *m, measure of, const amount *what, int begins);

#endif
