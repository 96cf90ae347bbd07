#include "team.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "../common/waiting.h"

/* A thread that was started, with its number in the team, and what it waited for a processor. */
typedef struct {
    pthread_t handle;
    size_t number;
    processor_wait waited;
} member;

static member *members; /* Without the first. */
static size_t count;
/* What they do next: it is theirs once `turn` has grown. */
static void (*next_part)(void *context, size_t thread);
static void *next_context;
static atomic_ulong turn, done;

/* Threads that wait look again and again, so that they are there at once, but leave their processor to
 * others between two looks: there may be more threads than processors. */
static void wait_for_change(atomic_ulong *number, unsigned long from)
{
    while (atomic_load_explicit(number, memory_order_acquire) == from)
        sched_yield();
}

static void *work(void *own)
{
    member *this_one = own;
    const size_t number = this_one->number;
    const processor_wait begun = begin_waiting_of_thread();
    for (unsigned long seen = 0;; seen++) {
        wait_for_change(&turn, seen);
        if (!next_part) {
            this_one->waited = waiting_of_thread(begun);
            return NULL;
        }
        next_part(next_context, number);
        atomic_fetch_add_explicit(&done, 1, memory_order_release);
    }
}

int begin_team(size_t threads)
{
    atomic_store(&turn, 0);
    members = calloc(threads, sizeof *members);
    for (count = 1; members && count < threads; count++) {
        member *one = &members[count - 1];
        one->number = count;
        if (pthread_create(&one->handle, NULL, work, one))
            return -1;
    }
    return members ? 0 : -1;
}

static void begin_turn(void (*part)(void *context, size_t thread), void *context)
{
    next_part = part;
    next_context = context;
    atomic_store_explicit(&done, 0, memory_order_relaxed);
    atomic_fetch_add_explicit(&turn, 1, memory_order_release);
}

void do_together(void (*part)(void *context, size_t thread), void *context)
{
    begin_turn(part, context);
    part(context, 0);
    while (atomic_load_explicit(&done, memory_order_acquire) + 1 < count)
        sched_yield();
}

void end_team(void)
{
    begin_turn(NULL, NULL);
    for (size_t i = 0; i + 1 < count; i++) {
        pthread_join(members[i].handle, NULL);
        add_waiting_of_thread(members[i].waited);
    }
    free(members);
}
