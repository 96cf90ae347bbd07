#include "calls.h"

#include <string.h>

#include "../common/dissemination.h"
#include "../common/standard.h"

#if HAS_MPI3
#define NON_BLOCKING(name, ...)                                                                    \
    static void start_##name(call *c)                                                              \
    {                                                                                              \
        MPI_I##name(__VA_ARGS__, &c->request);                                                     \
    }
#define START(name) start_##name
#else
#define NON_BLOCKING(name, ...)
#define START(name) NULL
#endif

#if HAS_MPI4
#define PERSISTENT(name, Name, ...)                                                                \
    static void open_##name(call *c)                                                               \
    {                                                                                              \
        MPI_##Name##_init(__VA_ARGS__, MPI_INFO_NULL, &c->request);                                \
    }
#define OPEN(name) open_##name
#else
#define PERSISTENT(name, Name, ...)
#define OPEN(name) NULL
#endif

/* The three ways in which MPI has a call, of the same arguments. */
#define CALLS(name, Name, ...)                                                                     \
    static void run_##name(void *context)                                                          \
    {                                                                                              \
        call *c = context;                                                                         \
        MPI_##Name(__VA_ARGS__);                                                                   \
    }                                                                                              \
    NON_BLOCKING(name, __VA_ARGS__)                                                                \
    PERSISTENT(name, Name, __VA_ARGS__)
#define CALLS_OF(name) .run = run_##name, .start = START(name), .open = OPEN(name)

int doubles(const call *c)
{
    return (int)(c->bytes / sizeof(double));
}

CALLS(barrier, Barrier, c->comm)
CALLS(bcast, Bcast, c->rank == 0 ? c->send : c->receive, (int)c->bytes, MPI_BYTE, 0, c->comm)
CALLS(gather, Gather, c->given, (int)c->bytes, MPI_BYTE, c->taken, (int)c->bytes, MPI_BYTE, 0,
      c->comm)
CALLS(scatter, Scatter, c->given, (int)c->bytes, MPI_BYTE, c->taken, (int)c->bytes, MPI_BYTE, 0,
      c->comm)
CALLS(allgather, Allgather, c->given, (int)c->bytes, MPI_BYTE, c->taken, (int)c->bytes, MPI_BYTE,
      c->comm)
CALLS(alltoall, Alltoall, c->given, (int)c->bytes, MPI_BYTE, c->taken, (int)c->bytes, MPI_BYTE,
      c->comm)
CALLS(gatherv, Gatherv, c->given, c->to[0], MPI_BYTE, c->taken, c->from, c->from_start, MPI_BYTE, 0,
      c->comm)
CALLS(scatterv, Scatterv, c->given, c->to, c->to_start, MPI_BYTE, c->taken, c->from[0], MPI_BYTE, 0,
      c->comm)
CALLS(allgatherv, Allgatherv, c->given, c->to[0], MPI_BYTE, c->taken, c->from, c->from_start,
      MPI_BYTE, c->comm)
CALLS(alltoallv, Alltoallv, c->given, c->to, c->to_start, MPI_BYTE, c->taken, c->from,
      c->from_start, MPI_BYTE, c->comm)
CALLS(alltoallw, Alltoallw, c->given, c->to, c->to_start, c->types, c->taken, c->from,
      c->from_start, c->types, c->comm)
CALLS(reduce, Reduce, c->given, c->taken, doubles(c), MPI_DOUBLE, c->op, 0, c->comm)
CALLS(allreduce, Allreduce, c->given, c->taken, doubles(c), MPI_DOUBLE, c->op, c->comm)
CALLS(scan, Scan, c->given, c->taken, doubles(c), MPI_DOUBLE, c->op, c->comm)
CALLS(exscan, Exscan, c->given, c->taken, doubles(c), MPI_DOUBLE, c->op, c->comm)
CALLS(reduce_scatter, Reduce_scatter, c->given, c->taken, c->to, MPI_DOUBLE, c->op, c->comm)
#if HAS_MPI3 /* It is of MPI 2.2. */
CALLS(reduce_scatter_block, Reduce_scatter_block, c->given, c->taken, doubles(c), MPI_DOUBLE, c->op,
      c->comm)
#else
#define run_reduce_scatter_block NULL
#endif

static void run_dissemination(void *context)
{
    dissemination_barrier(((call *)context)->comm);
}

static const collective collectives[] = {
    {.name = "barrier", .is_barrier = 1, CALLS_OF(barrier)},
    {.name = "bcast", .root_sends = 1, CALLS_OF(bcast)},
    {.name = "gather", .receive = OF_ROOT, .root_receives = 1, .in_place = AT_ROOT,
     CALLS_OF(gather)},
    {.name = "scatter", .send = OF_ROOT, .root_sends = 1, .in_place = AT_ROOT, CALLS_OF(scatter)},
    {.name = "allgather", .receive = OF_ALL, .in_place = EVERYWHERE, CALLS_OF(allgather)},
    {.name = "alltoall", .send = OF_ALL, .receive = OF_ALL, .in_place = EVERYWHERE,
     CALLS_OF(alltoall)},
    {.name = "reduce-min", .root_receives = 1, .reduces = LEAST, .in_place = AT_ROOT,
     CALLS_OF(reduce)},
    {.name = "reduce-sum", .root_receives = 1, .reduces = SUM, .in_place = AT_ROOT,
     CALLS_OF(reduce)},
    {.name = "allreduce-min", .reduces = LEAST, .in_place = EVERYWHERE, CALLS_OF(allreduce)},
    {.name = "allreduce-sum", .reduces = SUM, .in_place = EVERYWHERE, CALLS_OF(allreduce)},
    {.name = "reduce-scatter-block-sum", .send = OF_ALL, .reduces = SUM, .in_place = EVERYWHERE,
     CALLS_OF(reduce_scatter_block)},
    {.name = "reduce-scatter-sum", .send = OF_ALL, .reduces = SUM, .unequal = 1,
     .in_place = EVERYWHERE, CALLS_OF(reduce_scatter)},
    {.name = "scan-sum", .reduces = SUM, .of = UP_TO_OWN, .in_place = EVERYWHERE, CALLS_OF(scan)},
    {.name = "exscan-sum", .reduces = SUM, .of = BELOW_OWN, .in_place = EVERYWHERE,
     CALLS_OF(exscan)},
    {.name = "gatherv", .receive = OF_ROOT, .root_receives = 1, .unequal = 1, .in_place = AT_ROOT,
     CALLS_OF(gatherv)},
    {.name = "scatterv", .send = OF_ROOT, .root_sends = 1, .unequal = 1, .in_place = AT_ROOT,
     CALLS_OF(scatterv)},
    {.name = "allgatherv", .receive = OF_ALL, .unequal = 1, .in_place = EVERYWHERE,
     CALLS_OF(allgatherv)},
    {.name = "alltoallv", .send = OF_ALL, .receive = OF_ALL, .unequal = 1, .in_place = EVERYWHERE,
     CALLS_OF(alltoallv)},
    {.name = "alltoallw", .send = OF_ALL, .receive = OF_ALL, .unequal = 1, .in_place = EVERYWHERE,
     CALLS_OF(alltoallw)},
    {.name = "dissemination-barrier", .is_barrier = 1, .run = run_dissemination},
};
#define COLLECTIVES (sizeof collectives / sizeof collectives[0])

const char *const operation_names[] = {
    "barrier", "bcast", "gather", "scatter", "allgather", "alltoall", "reduce-min", "reduce-sum",
    "allreduce-min", "allreduce-sum", "reduce-scatter-block-sum", "reduce-scatter-sum", "scan-sum",
    "exscan-sum", "gatherv", "scatterv", "allgatherv", "alltoallv", "alltoallw",
    "dissemination-barrier", NULL};

const collective *find_collective(const char *name)
{
    for (size_t i = 0; i < COLLECTIVES; i++)
        if (strcmp(collectives[i].name, name) == 0)
            return &collectives[i];
    return NULL;
}
