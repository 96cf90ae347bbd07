#include "trips.h"

#include <stdlib.h>

#include "../common/clock.h"

#define TAG 1

/* Let another rank time round trips with this one. */
static void answer(MPI_Comm comm, int asking, const trip_plan *plan)
{
    const size_t often[2] = {plan->brief, plan->full};
    const int bytes[2] = {SHORT_BYTES, LONG_BYTES};
    for (int kind = 0; kind < 2; kind++)
        for (size_t i = 0; i < WARMUP + often[kind]; i++) {
            MPI_Recv(plan->buffer, bytes[kind], MPI_BYTE, asking, TAG, comm, MPI_STATUS_IGNORE);
            MPI_Send(plan->buffer, bytes[kind], MPI_BYTE, asking, TAG, comm);
        }
}

static time_summary ask(MPI_Comm comm, int answering, int bytes, size_t often,
                        const trip_plan *plan)
{
    for (size_t i = 0; i < WARMUP + often; i++) {
        const double began = seconds_now();
        MPI_Send(plan->buffer, bytes, MPI_BYTE, answering, TAG, comm);
        MPI_Recv(plan->buffer, bytes, MPI_BYTE, answering, TAG, comm, MPI_STATUS_IGNORE);
        if (i >= WARMUP)
            plan->times[i - WARMUP] = seconds_now() - began;
    }
    return summarise(plan->times, often, plan->scratch);
}

/* Tell a rank that asks where this one is, and answer it. */
static void serve(MPI_Comm comm, int asking, const trip *own, const trip_plan *plan)
{
    trip told = *own;
    MPI_Send(&told, (int)sizeof told, MPI_BYTE, asking, TAG, comm);
    answer(comm, asking, plan);
}

/* Time round trips with a rank that serves. */
static void measure(MPI_Comm comm, int answering, trip *own, const trip_plan *plan)
{
    trip told;
    MPI_Recv(&told, (int)sizeof told, MPI_BYTE, answering, TAG, comm, MPI_STATUS_IGNORE);
    own->from = told.from;
    own->there = told.here;
    own->brief = ask(comm, answering, SHORT_BYTES, plan->brief, plan);
    own->full = ask(comm, answering, LONG_BYTES, plan->full, plan);
}

unsigned long long bytes_of_pair(const trip_plan *plan)
{
    return (unsigned long long)(WARMUP + plan->brief) * SHORT_BYTES +
           (unsigned long long)(WARMUP + plan->full) * LONG_BYTES;
}

int hosts_met(int leader, int hosts)
{
    int met = leader > 0;
    for (long long distance = 1; distance < hosts; distance *= 2)
        met += leader < distance && leader + distance < hosts;
    return met;
}

trip time_trips(const host *own, const ranks_alike *of_host, const trip_plan *plan)
{
    int rank, within, here, leader, hosts;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_rank(of_host->sharing, &within);
    MPI_Comm_size(of_host->sharing, &here);
    /* What a rank tells has its own number in `from`, until it has measured. */
    const trip told = {.from = rank, .to = -1, .here = *own};
    trip found = {.from = rank, .to = rank ? rank : -1, .here = *own};
    if (within > 0) {
        measure(of_host->sharing, 0, &found, plan);
        return found;
    }
    for (int other = 1; other < here; other++)
        serve(of_host->sharing, other, &told, plan);
    MPI_Comm_rank(of_host->leaders, &leader);
    MPI_Comm_size(of_host->leaders, &hosts);
    /* In the round of a distance the leaders below it serve those as far above them. */
    for (long long distance = 1; distance < hosts; distance *= 2) {
        if (leader < distance && leader + distance < hosts)
            serve(of_host->leaders, (int)(leader + distance), &told, plan);
        else if (leader >= distance && leader < 2 * distance)
            measure(of_host->leaders, (int)(leader - distance), &found, plan);
    }
    return found;
}

unsigned long long messages_of_leader(unsigned long long ranks_of_host, unsigned long long hosts,
                                      const trip_plan *plan)
{
    unsigned long long pairs = ranks_of_host - 1;
    for (unsigned long long distance = 1; distance < hosts; distance *= 2)
        pairs++;
    return pairs * (1 + 2 * (2 * WARMUP + plan->brief + plan->full));
}

size_t trips_told(int ranks_of_host, int ranks, int most_listed)
{
    return ranks <= most_listed || ranks_of_host < 2 ? (size_t)ranks_of_host : 2;
}

static int by_rank(const void *one, const void *other)
{
    const int a = ((const trip *)one)->to, b = ((const trip *)other)->to;
    return (a > b) - (a < b);
}

/* Leave of a host's trips its lowest rank's and the slowest of the others. */
static void keep_slowest(trip *of_host, size_t count)
{
    for (size_t i = 2; i < count; i++)
        if (of_host[i].brief.median > of_host[1].brief.median)
            of_host[1] = of_host[i];
}

/* Gather on the lowest leader what all tell; NULL where memory ran out, and elsewhere. */
static trip *gather_from_leaders(MPI_Comm leaders, trip *told, size_t count, size_t *all)
{
    int leader, hosts, own = (int)count;
    MPI_Comm_rank(leaders, &leader);
    MPI_Comm_size(leaders, &hosts);
    int *counts = leader ? NULL : calloc(2 * (size_t)hosts, sizeof *counts);
    int *starts = counts ? counts + hosts : NULL;
    int failed = leader == 0 && !counts;
    MPI_Bcast(&failed, 1, MPI_INT, 0, leaders);
    if (failed)
        return NULL;
    MPI_Gather(&own, 1, MPI_INT, counts, 1, MPI_INT, 0, leaders);
    *all = 0;
    for (int i = 0; leader == 0 && i < hosts; i++) {
        starts[i] = (int)*all;
        *all += (size_t)counts[i];
    }
    trip *every = leader ? NULL : calloc(*all, sizeof *every);
    failed = leader == 0 && !every;
    MPI_Bcast(&failed, 1, MPI_INT, 0, leaders);
    if (!failed) {
        /* A type of its own, since the bytes of all may be more than an int counts. */
        MPI_Datatype a_trip;
        MPI_Type_contiguous((int)sizeof(trip), MPI_BYTE, &a_trip);
        MPI_Type_commit(&a_trip);
        MPI_Gatherv(told, own, a_trip, every, counts, starts, a_trip, 0, leaders);
        MPI_Type_free(&a_trip);
    }
    free(counts);
    return every;
}

trip *gather_trips(const trip *own, const ranks_alike *of_host, int most_listed, size_t *count)
{
    int ranks, here, within;
    trip mine = *own, *of_own_host = NULL, *every = NULL;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_size(of_host->sharing, &here);
    MPI_Comm_rank(of_host->sharing, &within);
    if (within == 0)
        of_own_host = calloc((size_t)here, sizeof *of_own_host);
    int failed = within == 0 && !of_own_host, any = failed;
    MPI_Allreduce(&failed, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (!any)
        MPI_Gather(&mine, (int)sizeof mine, MPI_BYTE, of_own_host, (int)sizeof mine, MPI_BYTE, 0,
                   of_host->sharing);
    if (!any && within == 0) {
        const size_t told = trips_told(here, ranks, most_listed);
        if (told < (size_t)here)
            keep_slowest(of_own_host, (size_t)here);
        every = gather_from_leaders(of_host->leaders, of_own_host, told, count);
    }
    free(of_own_host);
    if (every) {
        /* Rank 0, whose `to` is below all, has measured nothing. */
        qsort(every, *count, sizeof *every, by_rank);
        (*count)--;
        for (size_t i = 0; i < *count; i++)
            every[i] = every[i + 1];
    }
    return every;
}
