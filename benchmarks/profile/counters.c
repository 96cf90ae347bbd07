#include "counters.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

bool profiling;
static bool out_of_memory, several_threads;
static size_t world_size;
static pthread_mutex_t shared_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static counters *every_thread;
static _Thread_local counters *of_this_thread;

void start_counting(int world_ranks, bool threaded)
{
    world_size = (size_t)world_ranks;
    several_threads = threaded;
    profiling = true;
}

void stop_counting(void)
{
    profiling = false;
}

bool several_threads_call(void)
{
    return several_threads;
}

void lock_shared(void)
{
    if (several_threads)
        pthread_mutex_lock(&shared_lock);
}

void unlock_shared(void)
{
    if (several_threads)
        pthread_mutex_unlock(&shared_lock);
}

uint64_t nanoseconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

counters *counters_for(size_t peers)
{
    size_t flows = DIRECTION_COUNT * KIND_COUNT * peers;
    counters *made = calloc(1, sizeof *made + flows * sizeof *made->flows);
    if (made)
        made->peers = peers;
    return made;
}

static counters *make_counters(void)
{
    counters *made = counters_for(world_size);
    pthread_mutex_lock(&list_lock);
    if (made) {
        made->next = every_thread;
        every_thread = made;
    } else {
        out_of_memory = true;
    }
    pthread_mutex_unlock(&list_lock);
    of_this_thread = made;
    return made;
}

counters *begin_call(void)
{
    if (!profiling)
        return NULL;
    counters *own = of_this_thread;
    if (!own && !(own = make_counters()))
        return NULL;
    if (own->inside)
        return NULL;
    own->inside = true;
    return own;
}

void count_message(counters *own, call_id call, uint64_t bytes)
{
    call_counters *of_call = &own->calls[call];
    of_call->messages++;
    of_call->bytes += bytes;
    of_call->by_size[bytes ? 64 - __builtin_clzll(bytes) : 0]++;
}

flow *flow_of(counters *sum, flow_direction direction, flow_kind kind, int peer)
{
    return &sum->flows[((size_t)direction * KIND_COUNT + (size_t)kind) * sum->peers + (size_t)peer];
}

void count_flow(counters *own, flow_direction direction, flow_kind kind, int peer, uint64_t bytes)
{
    if (peer < 0) {
        own->outside_of_world++;
        return;
    }
    flow *one = flow_of(own, direction, kind, peer);
    one->messages++;
    one->bytes += bytes;
}

bool make_room(counters *own, int count)
{
    size_t wanted = count > 0 ? (size_t)count : 1;
    if (wanted <= own->room)
        return true;
    wanted = 2 * wanted;
    MPI_Request *requests = realloc(own->requests, wanted * sizeof *requests);
    if (requests)
        own->requests = requests;
    MPI_Status *statuses = realloc(own->statuses, wanted * sizeof *statuses);
    if (statuses)
        own->statuses = statuses;
    if (requests && statuses)
        own->room = wanted;
    return requests && statuses;
}

static void add(counters *sum, const counters *other)
{
    for (size_t i = 0; i < CALL_COUNT; i++) {
        call_counters *into = &sum->calls[i];
        const call_counters *from = &other->calls[i];
        into->calls += from->calls;
        into->nanoseconds += from->nanoseconds;
        into->messages += from->messages;
        into->bytes += from->bytes;
        into->received_messages += from->received_messages;
        into->received_bytes += from->received_bytes;
        for (size_t bin = 0; bin < SIZE_BINS; bin++)
            into->by_size[bin] += from->by_size[bin];
    }
    sum->unseen_receives += other->unseen_receives;
    sum->outside_of_world += other->outside_of_world;
    for (size_t i = 0; i < DIRECTION_COUNT * KIND_COUNT * sum->peers; i++) {
        sum->flows[i].messages += other->flows[i].messages;
        sum->flows[i].bytes += other->flows[i].bytes;
    }
}

counters *sum_of_threads(size_t *threads)
{
    *threads = 0;
    for (counters *one = every_thread; one; one = one->next) {
        if (one != every_thread)
            add(every_thread, one);
        ++*threads;
    }
    return every_thread;
}

bool memory_ran_out(void)
{
    return out_of_memory;
}

void free_counters(void)
{
    while (every_thread) {
        counters *next = every_thread->next;
        free(every_thread->requests);
        free(every_thread->statuses);
        free(every_thread);
        every_thread = next;
    }
    of_this_thread = NULL;
}
