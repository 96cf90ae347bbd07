/* The steps of one rank of an emulated application: messages along its edges, and computing while
 * they are on their way. */
#ifndef WYEAST_STEPS_H
#define WYEAST_STEPS_H

#include <mpi.h>
#include <stddef.h>

#include "../common/arguments.h"
#include "computing.h"
#include "graph.h"

/* A message that this rank sends or receives in every step. */
typedef struct {
    int partner; /* A rank of the application. */
    size_t bytes, offset;
    unsigned long long number; /* Of its edge in the graph. */
} message;

typedef struct {
    MPI_Comm comm; /* The application's. */
    int rank;
    message *incoming, *outgoing;
    size_t incoming_count, outgoing_count;
    size_t incoming_bytes, outgoing_bytes; /* In one step. */
    unsigned char *received, *sent;
    MPI_Request *requests;
    MPI_Status *statuses;
} exchange;

/* What one run was, as this rank saw it: seconds and bytes. */
typedef struct {
    double time;          /* From the first message posted to the last one through. */
    double communicating; /* Of it, posting messages and waiting for them. */
    unsigned long long sent_bytes, received_bytes;
    int clock_went_back;
} run_seen;

/* Returns 0, or -1 where there is no memory for the messages. */
int make_exchange(const graph *graph, int rank, MPI_Comm comm, exchange *made);

void free_exchange(exchange *exchange);

/* One run. In each step all messages are posted, then the rank computes for so long as `times`
 * says, then it waits for the messages. `times` NULL: it does not compute. `computed`, unless NULL,
 * gets how long it really computed in each step. */
run_seen run_steps(exchange *exchange, const computing *how, const double *times,
                   double *computed, size_t steps);

/* One step, untimed, whose data are compared with a pattern. Returns the bytes that this rank
 * compared, or -1 with a sentence. */
long long verify_step(exchange *exchange, const computing *how, int application,
                      complaint *about);

#endif
