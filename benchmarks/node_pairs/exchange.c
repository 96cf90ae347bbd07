#include "exchange.h"

#include <sched.h>

#include "../common/buffers.h"
#include "../common/clock.h"

enum { TAG_MESSAGE = 1, TAG_ANSWER };

/* Wait for the first requests. A polite rank lets another one run between two looks: a node may have
 * one core for all that runs on it, which who polls keeps for milliseconds. */
static void wait_for(const meeting *m, size_t requests)
{
    if (!m->is_polite) {
        MPI_Waitall((int)requests, m->requests, MPI_STATUSES_IGNORE);
        return;
    }
    for (int is_done = 0;;) {
        MPI_Testall((int)requests, m->requests, &is_done, MPI_STATUSES_IGNORE);
        if (is_done)
            return;
        sched_yield();
    }
}

static void send_all(const meeting *m, const amount *what)
{
    for (size_t i = 0; i < what->messages; i++)
        MPI_Isend(m->send + i * what->bytes, (int)what->bytes, MPI_BYTE, m->partner, TAG_MESSAGE,
                  MPI_COMM_WORLD, &m->requests[i]);
    wait_for(m, what->messages);
}

static void receive_all(const meeting *m, const amount *what)
{
    for (size_t i = 0; i < what->messages; i++)
        MPI_Irecv(m->receive + i * what->bytes, (int)what->bytes, MPI_BYTE, m->partner,
                  TAG_MESSAGE, MPI_COMM_WORLD, &m->requests[i]);
    wait_for(m, what->messages);
}

static void round_trip(const meeting *m, const amount *what, int begins)
{
    if (begins)
        send_all(m, what);
    receive_all(m, what);
    if (!begins)
        send_all(m, what);
}

static void one_way(const meeting *m, const amount *what, int begins)
{
    if (begins) {
        send_all(m, what);
        MPI_Irecv(NULL, 0, MPI_BYTE, m->partner, TAG_ANSWER, MPI_COMM_WORLD, &m->requests[0]);
        wait_for(m, 1);
    } else {
        receive_all(m, what);
        MPI_Send(NULL, 0, MPI_BYTE, m->partner, TAG_ANSWER, MPI_COMM_WORLD);
    }
}

long long prove_meeting(const meeting *m, const amount *what, unsigned long long n,
                        complaint *about)
{
    const unsigned long long first = n * what->messages;
    for (size_t i = 0; i < what->messages; i++) {
        fill_pattern(m->send + i * what->bytes, what->bytes, first + i, m->rank);
        fill_wrong(m->receive + i * what->bytes, what->bytes, first + i, m->partner);
    }
    round_trip(m, what, m->rank < m->partner);
    for (size_t i = 0; i < what->messages; i++) {
        const long long wrong =
            find_difference(m->receive + i * what->bytes, what->bytes, first + i, m->partner);
        if (wrong >= 0)
            return complain(about, "%zu bytes: rank %d has rank %d's data wrong from byte %lld of "
                                   "message %zu on", what->bytes, m->rank, m->partner, wrong, i);
    }
    return (long long)(what->messages * what->bytes);
}

time_summary time_meeting(const meeting *m, measure of, const amount *what, int begins)
{
    for (size_t i = 0; i < what->iterations; i++) {
        const double began = seconds_now();
        if (of == LATENCY)
            round_trip(m, what, begins);
        else
            one_way(m, what, begins);
        m->times[i] = seconds_now() - began;
    }
    return summarise(m->times, what->iterations, m->scratch);
}
