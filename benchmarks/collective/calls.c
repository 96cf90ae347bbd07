#include "calls.h"

#include <string.h>

size_t messages_of(extent what, int rank, int ranks)
{
    return what == ONE ? 1 : what == OF_ALL || rank == 0 ? (size_t)ranks : 0;
}

static void run_barrier(void *context)
{
    MPI_Barrier(((call *)context)->comm);
}

static void run_bcast(void *context)
{
    call *c = context;
    MPI_Bcast(c->rank == 0 ? c->send : c->receive, (int)c->bytes, MPI_BYTE, 0, c->comm);
}

static void run_gather(void *context)
{
    call *c = context;
    MPI_Gather(c->send, (int)c->bytes, MPI_BYTE, c->receive, (int)c->bytes, MPI_BYTE, 0, c->comm);
}

static void run_scatter(void *context)
{
    call *c = context;
    MPI_Scatter(c->send, (int)c->bytes, MPI_BYTE, c->receive, (int)c->bytes, MPI_BYTE, 0, c->comm);
}

static void run_allgather(void *context)
{
    call *c = context;
    MPI_Allgather(c->send, (int)c->bytes, MPI_BYTE, c->receive, (int)c->bytes, MPI_BYTE, c->comm);
}

static void run_alltoall(void *context)
{
    call *c = context;
    MPI_Alltoall(c->send, (int)c->bytes, MPI_BYTE, c->receive, (int)c->bytes, MPI_BYTE, c->comm);
}

int doubles(const call *c)
{
    return (int)(c->bytes / sizeof(double));
}

static void run_reduce_min(void *context)
{
    call *c = context;
    MPI_Reduce(c->send, c->receive, doubles(c), MPI_DOUBLE, MPI_MIN, 0, c->comm);
}

static void run_reduce_sum(void *context)
{
    call *c = context;
    MPI_Reduce(c->send, c->receive, doubles(c), MPI_DOUBLE, MPI_SUM, 0, c->comm);
}

static void run_allreduce_min(void *context)
{
    call *c = context;
    MPI_Allreduce(c->send, c->receive, doubles(c), MPI_DOUBLE, MPI_MIN, c->comm);
}

static void run_allreduce_sum(void *context)
{
    call *c = context;
    MPI_Allreduce(c->send, c->receive, doubles(c), MPI_DOUBLE, MPI_SUM, c->comm);
}

static const collective collectives[] = {
    {"barrier", ONE, ONE, 0, 0, 0, run_barrier},
    {"bcast", ONE, ONE, 1, 0, 0, run_bcast},
    {"gather", ONE, OF_ROOT, 0, 1, 0, run_gather},
    {"scatter", OF_ROOT, ONE, 1, 0, 0, run_scatter},
    {"allgather", ONE, OF_ALL, 0, 0, 0, run_allgather},
    {"alltoall", OF_ALL, OF_ALL, 0, 0, 0, run_alltoall},
    {"reduce-min", ONE, ONE, 0, 1, 1, run_reduce_min},
    {"reduce-sum", ONE, ONE, 0, 1, 1, run_reduce_sum},
    {"allreduce-min", ONE, ONE, 0, 0, 1, run_allreduce_min},
    {"allreduce-sum", ONE, ONE, 0, 0, 1, run_allreduce_sum},
};
#define COLLECTIVES (sizeof collectives / sizeof collectives[0])

const char *const operation_names[] = {
    "barrier", "bcast", "gather", "scatter", "allgather", "alltoall", "reduce-min", "reduce-sum",
    "allreduce-min", "allreduce-sum", NULL};

const collective *find_collective(const char *name)
{
    for (size_t i = 0; i < COLLECTIVES; i++)
        if (strcmp(collectives[i].name, name) == 0)
            return &collectives[i];
    return NULL;
}

int is_barrier(const collective *what)
{
    return what->run == run_barrier;
}
