/* What a rank counts. Each thread has its own counters, so that none waits for another; they are
 * added up at the end. */
#ifndef WYEAST_PROFILE_COUNTERS_H
#define WYEAST_PROFILE_COUNTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "call_names.h"

/* For messages of no bytes, one, two and three, four to seven and so on. */
#define SIZE_BINS 65

typedef struct {
    uint64_t calls, nanoseconds;
    /* What the calls sent or gave: how often, and how many bytes. */
    uint64_t messages, bytes;
    uint64_t received_messages, received_bytes;
    uint64_t by_size[SIZE_BINS];
} call_counters;

typedef struct {
    uint64_t messages, bytes;
} flow;

typedef enum { KIND_MESSAGE, KIND_COLLECTIVE, KIND_ONE_SIDED, KIND_COUNT } flow_kind;
typedef enum { SENT_TO, RECEIVED_FROM, DIRECTION_COUNT } flow_direction;

typedef struct counters {
    struct counters *next;
    bool inside; /* A call of MPI by MPI itself is not counted. */
    call_counters calls[CALL_COUNT];
    uint64_t unseen_receives;   /* Messages whose size or sender is not known. */
    uint64_t outside_of_world;  /* Messages to or from ranks that are not of MPI_COMM_WORLD. */
    MPI_Request *requests;      /* Room for copies. */
    MPI_Status *statuses;
    size_t room;
    size_t peers;
    flow flows[]; /* [direction][kind][peer]: a rank of MPI_COMM_WORLD, or a node in a sum of many */
} counters;

/* Whether calls are counted: between the end of MPI_Init and the beginning of MPI_Finalize. */
extern bool profiling;

/* Begin and stop counting. `threaded`: several threads may call MPI at once. */
void start_counting(int world_ranks, bool threaded);
void stop_counting(void);

/* Of each thread its own; NULL where nothing is to be counted. */
counters *begin_call(void);

/* Whether several threads may call MPI at once. */
bool several_threads_call(void);

/* Take and give back the lock of what threads share; nothing where one thread at a time calls MPI. */
void lock_shared(void);
void unlock_shared(void);

uint64_t nanoseconds_now(void);

/* Count a message that a call sent, or what it gave to a collective operation. */
void count_message(counters *own, call_id call, uint64_t bytes);

/* Count what went between this rank and another of MPI_COMM_WORLD; below 0: outside of it. */
void count_flow(counters *own, flow_direction direction, flow_kind kind, int peer, uint64_t bytes);

/* Room for a number of requests and statuses. Returns false where memory ran out. */
bool make_room(counters *own, int count);

/* After counting: the sum over the threads, whose number it writes; NULL if there is none.
 * It is freed with the rest. */
counters *sum_of_threads(size_t *threads);

/* Counters of nothing with so many peers, to be freed; NULL where memory ran out. */
counters *counters_for(size_t peers);
flow *flow_of(counters *sum, flow_direction direction, flow_kind kind, int peer);
bool memory_ran_out(void);
void free_counters(void);

#endif
