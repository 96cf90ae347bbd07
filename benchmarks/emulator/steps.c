#include "steps.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../common/buffers.h"
#include "../common/clock.h"

#define TAG 1
/* The verification's data are those of this message number and on, by application. */
#define NUMBERS_OF_AN_APPLICATION ((unsigned long long)MOST_EDGES)

/* Add an edge to the messages in one direction; -1 where the bytes overflow. */
static int add_message(message *messages, size_t *count, size_t *bytes, int partner,
                       const graph *graph, size_t number)
{
    const size_t size = graph->edges[number].bytes;
    if (size > SIZE_MAX / 2 - *bytes)
        return -1;
    messages[(*count)++] = (message){partner, size, *bytes, number};
    *bytes += size;
    return 0;
}

int make_exchange(const graph *graph, int rank, MPI_Comm comm, exchange *made)
{
    size_t incoming = 0, outgoing = 0;
    memset(made, 0, sizeof *made);
    made->comm = comm;
    made->rank = rank;
    for (size_t e = 0; e < graph->edge_count; e++) {
        incoming += graph->edges[e].to == rank;
        outgoing += graph->edges[e].from == rank;
    }
    made->incoming = calloc(incoming + 1, sizeof *made->incoming);
    made->outgoing = calloc(outgoing + 1, sizeof *made->outgoing);
    made->requests = calloc(incoming + outgoing + 1, sizeof(MPI_Request));
    made->statuses = calloc(incoming + outgoing + 1, sizeof(MPI_Status));
    if (!made->incoming || !made->outgoing || !made->requests || !made->statuses)
        return -1;
    for (size_t e = 0; e < graph->edge_count; e++) {
        const edge *edge = &graph->edges[e];
        if ((edge->to == rank && add_message(made->incoming, &made->incoming_count,
                                             &made->incoming_bytes, edge->from, graph, e)) ||
            (edge->from == rank && add_message(made->outgoing, &made->outgoing_count,
                                               &made->outgoing_bytes, edge->to, graph, e)))
            return -1;
    }
    made->received = page_aligned(made->incoming_bytes);
    made->sent = page_aligned(made->outgoing_bytes);
    return made->received && made->sent ? 0 : -1;
}

void free_exchange(exchange *exchange)
{
    free(exchange->incoming);
    free(exchange->outgoing);
    free(exchange->requests);
    free(exchange->statuses);
    free(exchange->received);
    free(exchange->sent);
    memset(exchange, 0, sizeof *exchange);
}

static void post_messages(exchange *exchange)
{
    MPI_Request *next = exchange->requests;
    for (size_t m = 0; m < exchange->incoming_count; m++) {
        const message *message = &exchange->incoming[m];
        MPI_Irecv(exchange->received + message->offset, (int)message->bytes, MPI_BYTE,
                  message->partner, TAG, exchange->comm, next++);
    }
    for (size_t m = 0; m < exchange->outgoing_count; m++) {
        const message *message = &exchange->outgoing[m];
        MPI_Isend(exchange->sent + message->offset, (int)message->bytes, MPI_BYTE,
                  message->partner, TAG, exchange->comm, next++);
    }
}

/* Returns the bytes that the library says it has received. */
static unsigned long long wait_for_messages(exchange *exchange)
{
    unsigned long long received = 0;
    MPI_Waitall((int)(exchange->incoming_count + exchange->outgoing_count), exchange->requests,
                exchange->statuses);
    for (size_t m = 0; m < exchange->incoming_count; m++) {
        int bytes = 0;
        MPI_Get_count(&exchange->statuses[m], MPI_BYTE, &bytes);
        received += bytes > 0 ? (unsigned long long)bytes : 0;
    }
    return received;
}

run_seen run_steps(exchange *exchange, const computing *how, const double *times,
                   double *computed, size_t steps)
{
    run_seen seen = {0};
    const double began = seconds_now();
    double begin = began;
    for (size_t step = 0; step < steps; step++) {
        post_messages(exchange);
        const double posted = seconds_now();
        const double through =
            times && times[step] > 0.0 ? compute_until(how, posted, times[step]) : posted;
        seen.received_bytes += wait_for_messages(exchange);
        seen.sent_bytes += exchange->outgoing_bytes;
        const double end = seconds_now();
        seen.clock_went_back |= posted < begin || through < posted || end < through;
        seen.communicating += (posted - begin) + (end - through);
        if (computed)
            computed[step] = through - posted;
        begin = end;
    }
    seen.time = begin - began;
    return seen;
}

long long verify_step(exchange *exchange, const computing *how, int application,
                      complaint *about)
{
    const unsigned long long first = (unsigned)application * NUMBERS_OF_AN_APPLICATION;
    for (size_t m = 0; m < exchange->outgoing_count; m++) {
        const message *sent = &exchange->outgoing[m];
        fill_pattern(exchange->sent + sent->offset, sent->bytes, first + sent->number,
                     exchange->rank);
    }
    for (size_t m = 0; m < exchange->incoming_count; m++) {
        const message *received = &exchange->incoming[m];
        fill_wrong(exchange->received + received->offset, received->bytes,
                   first + received->number, received->partner);
    }
    (void)run_steps(exchange, how, NULL, NULL, 1);
    long long compared = 0;
    for (size_t m = 0; m < exchange->incoming_count; m++) {
        const message *received = &exchange->incoming[m];
        const long long wrong =
            find_difference(exchange->received + received->offset, received->bytes,
                            first + received->number, received->partner);
        if (wrong >= 0)
            return complain(about, "application %d, %zu bytes: rank %d has rank %d's data wrong "
                                   "from byte %lld on", application, received->bytes,
                            exchange->rank, received->partner, wrong);
        compared += (long long)received->bytes;
    }
    return compared;
}
