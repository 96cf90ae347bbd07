#include "measure.h"

#include <mpi.h>
#include <stdlib.h>
#include <time.h>

#include "../common/clock.h"
#include "../common/communication.h"
#include "../common/leaving.h"
#include "../common/progress.h"
#include "../common/summary.h"
#include "steps.h"

/* Between two looks for a message, by a rank that has nothing to do. */
#define NAP_NS 1000000L
/* Warm-up iterations are other runs than the timed ones. */
#define FIRST_WARMUP_RUN (1ULL << 40)

typedef struct {
    const emulation_plan *plan;
    const application_list *list;
    MPI_Comm naps;  /* Of the world, for messages between runs. */
    int mine, rank; /* This rank's application, and its own rank in that. */
    exchange exchange;
    double *drawn, *computed; /* By step. */
    double *gathered;         /* The computed times by rank and step, on the master. */
    double *begin, *next;     /* By rank, on the master. */
    double *times;            /* By time_kind and iteration. */
    double values[VALUES];
    unsigned long long bytes[BYTES];
    int clock_went_back;
} measurement;

static void receive_asleep(int from, MPI_Comm comm)
{
    const struct timespec nap = {.tv_nsec = NAP_NS};
    char nothing;
    int there = 0;
    MPI_Status status;
    for (;;) {
        MPI_Iprobe(from, 0, comm, &there, &status);
        if (there)
            break;
        (void)nanosleep(&nap, NULL);
    }
    MPI_Recv(&nothing, 0, MPI_BYTE, from, 0, comm, &status);
}

/* A barrier in which nobody spins: a rank that waits in MPI_Barrier would take a processor, and
 * the application that runs alone would not be alone. */
static void synchronise_asleep(MPI_Comm comm)
{
    char nothing = 0;
    int rank, ranks;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    if (rank != 0) {
        MPI_Send(&nothing, 0, MPI_BYTE, 0, 0, comm);
        receive_asleep(0, comm);
        return;
    }
    for (int other = 1; other < ranks; other++)
        receive_asleep(other, comm);
    for (int other = 1; other < ranks; other++)
        MPI_Send(&nothing, 0, MPI_BYTE, other, 0, comm);
}

static const graph *own_graph(const measurement *m)
{
    return &m->list->all[m->mine].graph;
}

/* How long a run took if messages took no time: a rank begins a step when it has computed in the
 * one before and those that it hears from have begun that one. */
static double time_of_computing(const measurement *m)
{
    const graph *graph = own_graph(m);
    const size_t steps = (size_t)m->plan->steps, ranks = (size_t)graph->ranks;
    double last = 0.0;
    for (size_t r = 0; r < ranks; r++)
        m->begin[r] = 0.0;
    for (size_t step = 0; step < steps; step++) {
        for (size_t r = 0; r < ranks; r++)
            m->next[r] = m->begin[r] + m->gathered[r * steps + step];
        for (size_t e = 0; e < graph->edge_count; e++) {
            const edge *edge = &graph->edges[e];
            if (m->next[edge->to] < m->begin[edge->from])
                m->next[edge->to] = m->begin[edge->from];
        }
        for (size_t r = 0; r < ranks; r++) {
            m->begin[r] = m->next[r];
            last = m->begin[r] > last ? m->begin[r] : last;
        }
    }
    return last;
}

/* One run; `iteration` is negative in a warm-up. */
static void run(measurement *m, time_kind kind, size_t application, long long iteration)
{
    synchronise_asleep(m->naps);
    if (kind != TIME_TOGETHER && (int)application != m->mine)
        return;
    const int steps = (int)m->plan->steps;
    MPI_Barrier(kind == TIME_TOGETHER ? MPI_COMM_WORLD : m->exchange.comm);
    const run_seen seen =
        run_steps(&m->exchange, &m->plan->how, kind == TIME_MESSAGES ? NULL : m->drawn,
                  kind == TIME_ALONE ? m->computed : NULL, (size_t)steps);
    m->clock_went_back |= seen.clock_went_back;
    if (iteration < 0)
        return;
    m->times[kind * m->plan->iterations + iteration] = seen.time;
    m->bytes[BYTES_SENT] += seen.sent_bytes;
    m->bytes[BYTES_RECEIVED] += seen.received_bytes;
    if (kind == TIME_ALONE) {
        m->values[SUM_ALONE] += seen.time;
        m->values[COMMUNICATING_ALONE] += seen.communicating;
        MPI_Gather(m->computed, steps, MPI_DOUBLE, m->gathered, steps, MPI_DOUBLE, 0,
                   m->exchange.comm);
        if (m->rank == 0)
            m->times[TIME_COMPUTING * m->plan->iterations + iteration] = time_of_computing(m);
    } else if (kind == TIME_TOGETHER) {
        m->values[SUM_TOGETHER] += seen.time;
        m->values[COMMUNICATING_TOGETHER] += seen.communicating;
    }
}

/* All runs of an iteration have the same computing times. The order is turned round from one to the
 * next, so that what changes in the course of time favours neither alone nor together. */
static void run_iteration(measurement *m, long long iteration, long long warmup)
{
    const size_t steps = (size_t)m->plan->steps, count = m->list->count;
    const int backwards = (iteration < 0 ? warmup : iteration) % 2 != 0;
    draw_computing(&m->plan->how, m->mine, m->rank,
                   iteration < 0 ? FIRST_WARMUP_RUN + (unsigned long long)warmup
                                 : (unsigned long long)iteration,
                   own_graph(m)->compute_mean[m->rank], m->drawn, steps);
    for (size_t step = 0; iteration >= 0 && step < steps; step++)
        m->values[MEAN_DRAWN] += m->drawn[step] / (double)m->plan->iterations;
    if (backwards)
        run(m, TIME_TOGETHER, 0, iteration);
    for (size_t a = 0; a < count; a++) {
        const size_t application = backwards ? count - 1 - a : a;
        run(m, backwards ? TIME_MESSAGES : TIME_ALONE, application, iteration);
        run(m, backwards ? TIME_ALONE : TIME_MESSAGES, application, iteration);
    }
    if (!backwards)
        run(m, TIME_TOGETHER, 0, iteration);
}

static void find_own_rank(measurement *m)
{
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (size_t a = 0; a < m->list->count; a++)
        for (int r = 0; r < m->list->all[a].graph.ranks; r++)
            if (m->list->all[a].world_ranks[r] == rank) {
                m->mine = (int)a;
                m->rank = r;
            }
}

/* Returns -1 where there is no memory. */
static int reserve(measurement *m)
{
    MPI_Comm comm;
    MPI_Comm_split(MPI_COMM_WORLD, m->mine, m->rank, &comm);
    const size_t steps = (size_t)m->plan->steps, iterations = (size_t)m->plan->iterations;
    const size_t ranks = (size_t)own_graph(m)->ranks;
    m->drawn = calloc(steps, sizeof *m->drawn);
    m->computed = calloc(steps, sizeof *m->computed);
    m->times = calloc(iterations, TIMES * sizeof *m->times);
    if (m->rank == 0) {
        m->gathered = calloc(ranks, steps * sizeof *m->gathered);
        m->begin = calloc(ranks, sizeof *m->begin);
        m->next = calloc(ranks, sizeof *m->next);
        if (!m->gathered || !m->begin || !m->next)
            return -1;
    }
    return make_exchange(own_graph(m), m->rank, comm, &m->exchange) || !m->drawn ||
                   !m->computed || !m->times
               ? -1
               : 0;
}

static void release(measurement *m)
{
    MPI_Comm_free(&m->exchange.comm);
    MPI_Comm_free(&m->naps);
    free_exchange(&m->exchange);
    free(m->drawn);
    free(m->computed);
    free(m->gathered);
    free(m->begin);
    free(m->next);
    free(m->times);
}

/* Every byte that the graph has sent must have come where the graph says. */
static int check_bytes(const measurement *m, complaint *about)
{
    const unsigned long long steps =
        RUNS_OF_AN_ITERATION * (unsigned long long)(m->plan->iterations * m->plan->steps);
    const unsigned long long expected = steps * m->exchange.incoming_bytes;
    if (m->clock_went_back)
        return complain(about, "application %d: rank %d's clock went backwards", m->mine, m->rank);
    if (m->bytes[BYTES_RECEIVED] != expected)
        return complain(about, "application %d: rank %d received %llu bytes, and %llu were sent "
                               "to it", m->mine, m->rank, m->bytes[BYTES_RECEIVED], expected);
    return 0;
}

/* Bring everything to rank 0. Returns -1 with a sentence. */
static int collect(const program_description *program, measurement *m, emulation *measured,
                   complaint *about)
{
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const size_t iterations = (size_t)m->plan->iterations, count = TIMES * iterations;
    double *none = calloc(count, sizeof *none);
    if (rank == 0) {
        measured->times = calloc(m->list->count, count * sizeof *measured->times);
        measured->values = calloc((size_t)ranks, VALUES * sizeof *measured->values);
        measured->bytes = calloc((size_t)ranks, BYTES * sizeof *measured->bytes);
    }
    if (!none || (rank == 0 && (!measured->times || !measured->values || !measured->bytes)))
        leave_at_once(program->name, "no memory for the times");
    m->values[MEDIAN_ALONE] =
        summarise(m->times + TIME_ALONE * iterations, iterations, none).median;
    m->values[MEDIAN_TOGETHER] =
        summarise(m->times + TIME_TOGETHER * iterations, iterations, none).median;
    for (size_t i = 0; i < count; i++)
        none[i] = 0.0;
    for (size_t a = 0; a < m->list->count; a++)
        MPI_Reduce((int)a == m->mine ? m->times : none,
                   rank == 0 ? measured->times + a * count : NULL, (int)count, MPI_DOUBLE, MPI_MAX,
                   0, MPI_COMM_WORLD);
    free(none);
    MPI_Gather(m->values, VALUES, MPI_DOUBLE, measured->values, VALUES, MPI_DOUBLE, 0,
               MPI_COMM_WORLD);
    MPI_Gather(m->bytes, BYTES, MPI_UNSIGNED_LONG_LONG, measured->bytes, BYTES,
               MPI_UNSIGNED_LONG_LONG, 0, MPI_COMM_WORLD);
    for (size_t a = 0; rank == 0 && a < m->list->count; a++)
        for (size_t i = 0; i < TIME_COMPUTING * iterations; i++)
            if (!(measured->times[a * count + i] > 0.0))
                return complain(about, "application %zu: a run took no time that the clock can "
                                       "resolve; give it more --steps", a);
    return 0;
}

void measure_applications(const program_description *program, const application_list *list,
                          const emulation_plan *plan, emulation *measured)
{
    measurement m = {.plan = plan, .list = list};
    complaint about = {""};
    int rank;
    progress done;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    *measured = (emulation){0};
    begin_progress(&done, program->name, "iterations", (size_t)(plan->warmup + plan->iterations),
                   seconds_now);
    find_own_rank(&m);
    MPI_Comm_dup(MPI_COMM_WORLD, &m.naps);
    if (reserve(&m))
        leave_at_once(program->name, "no memory for the messages and steps of the applications");
    const long long compared = verify_step(&m.exchange, &plan->how, m.mine, &about);
    refuse_together(program, compared < 0, &about);
    m.bytes[BYTES_VERIFIED] = (unsigned long long)compared;
    const double began = seconds_now();
    measured->once = began - done.began;
    for (long long i = -plan->warmup; i < plan->iterations; i++) {
        if (i < 0)
            run_iteration(&m, -1, plan->warmup + i);
        else
            run_iteration(&m, i, 0);
        if (rank == 0)
            count_part(&done);
    }
    synchronise_asleep(m.naps);
    measured->each = (seconds_now() - began) / (double)(plan->warmup + plan->iterations);
    refuse_together(program, check_bytes(&m, &about) != 0, &about);
    refuse_together(program, collect(program, &m, measured, &about) != 0, &about);
    release(&m);
}

void free_emulation(emulation *measured)
{
    free(measured->times);
    free(measured->values);
    free(measured->bytes);
    *measured = (emulation){0};
}
