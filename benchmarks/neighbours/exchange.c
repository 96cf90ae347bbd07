#include "exchange.h"

#include <string.h>

#include "../common/standard.h"

enum { TAG = 1 };

const char *const method_names[] = {"isend-irecv", "neighbourhood", "neighbourhood-non-blocking",
                                    "neighbourhood-persistent", NULL};

static void run_isend_irecv(void *context)
{
    exchange *e = context;
    for (int i = 0; i < e->of.in; i++)
        MPI_Irecv(e->receive + e->from_start[i], e->from[i], MPI_BYTE, e->of.from[i], TAG, e->comm,
                  &e->requests[i]);
    for (int i = 0; i < e->of.out; i++)
        MPI_Isend(e->send + e->to_start[i], e->to[i], MPI_BYTE, e->of.to[i], TAG, e->comm,
                  &e->requests[e->of.in + i]);
    MPI_Waitall(e->of.in + e->of.out, e->requests, MPI_STATUSES_IGNORE);
}

#if HAS_MPI3
/* Of the blocks that all are alike the first is as long as any; a rank without a neighbour has none. */
#define ONE_BLOCK(e)                                                                               \
    (e)->send, (e)->of.out ? (e)->to[0] : 0, MPI_BYTE, (e)->receive, (e)->from, (e)->from_start,   \
        MPI_BYTE, (e)->comm
#define BLOCK_FOR_EACH(e)                                                                          \
    (e)->send, (e)->to, (e)->to_start, MPI_BYTE, (e)->receive, (e)->from, (e)->from_start,         \
        MPI_BYTE, (e)->comm

static void run_neighbourhood(void *context)
{
    exchange *e = context;
    if (e->one_block)
        MPI_Neighbor_allgatherv(ONE_BLOCK(e));
    else
        MPI_Neighbor_alltoallv(BLOCK_FOR_EACH(e));
}

static void run_non_blocking(void *context)
{
    exchange *e = context;
    if (e->one_block)
        MPI_Ineighbor_allgatherv(ONE_BLOCK(e), &e->requests[0]);
    else
        MPI_Ineighbor_alltoallv(BLOCK_FOR_EACH(e), &e->requests[0]);
    MPI_Wait(&e->requests[0], MPI_STATUS_IGNORE);
}

void make_graph(const neighbours *of, MPI_Comm *made)
{
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, of->in, of->from, of->weights, of->out,
                                   of->to, of->weights, MPI_INFO_NULL, 0, made);
}
#else
#define run_neighbourhood NULL
#define run_non_blocking NULL

void make_graph(const neighbours *of, MPI_Comm *made)
{
    (void)of;
    MPI_Comm_dup(MPI_COMM_WORLD, made);
}
#endif

#if HAS_MPI4
static void open_persistent(exchange *e)
{
    if (e->one_block)
        MPI_Neighbor_allgatherv_init(ONE_BLOCK(e), MPI_INFO_NULL, &e->requests[0]);
    else
        MPI_Neighbor_alltoallv_init(BLOCK_FOR_EACH(e), MPI_INFO_NULL, &e->requests[0]);
}

static void close_persistent(exchange *e)
{
    MPI_Request_free(&e->requests[0]);
}

static void run_persistent(void *context)
{
    exchange *e = context;
    MPI_Start(&e->requests[0]);
    MPI_Wait(&e->requests[0], MPI_STATUS_IGNORE);
}
#else
#define open_persistent NULL
#define close_persistent NULL
#define run_persistent NULL
#endif

static const exchange_method methods[] = {
    {.name = "isend-irecv", .run = run_isend_irecv},
    {.name = "neighbourhood", .run = run_neighbourhood},
    {.name = "neighbourhood-non-blocking", .run = run_non_blocking},
    {.name = "neighbourhood-persistent", .run = run_persistent, .open = open_persistent,
     .close = close_persistent},
};

const exchange_method *find_method(const char *name)
{
    for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++)
        if (strcmp(methods[i].name, name) == 0)
            return &methods[i];
    return NULL;
}
