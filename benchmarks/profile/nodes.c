#include "nodes.h"

#include <stdlib.h>
#include <string.h>

#include "../common/record_pieces.h"

/* What ranks count is added up as unsigned long, which all versions of MPI know. */
_Static_assert(sizeof(unsigned long) == sizeof(uint64_t), "counts are as long as unsigned long");
#define NUMBERS_OF(type) ((int)(sizeof(type) / (sizeof(uint64_t))))

static int all_have(const void *mine)
{
    int here = mine != NULL, everywhere = 0;
    PMPI_Allreduce(&here, &everywhere, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    return everywhere;
}

int find_nodes(world_nodes *found, int ranks)
{
    rank_place here;
    int own = 0;
    find_place(&here);
    find_alike(&found->alike, here.host);
    found->count = found->alike.texts;
    if (found->alike.leaders != MPI_COMM_NULL)
        PMPI_Comm_rank(found->alike.leaders, &own);
    PMPI_Bcast(&own, 1, MPI_INT, 0, found->alike.sharing);
    found->of_rank = calloc((size_t)ranks, sizeof *found->of_rank);
    found->lowest = calloc((size_t)found->count, sizeof *found->lowest);
    if (!all_have(found->of_rank && found->lowest ? found : NULL))
        return -1;
    PMPI_Allgather(&own, 1, MPI_INT, found->of_rank, 1, MPI_INT, MPI_COMM_WORLD);
    for (int rank = ranks - 1; rank >= 0; rank--)
        found->lowest[found->of_rank[rank]] = rank;
    return 0;
}

void free_nodes(world_nodes *found)
{
    free(found->of_rank);
    free(found->lowest);
    free_alike(&found->alike);
}

/* Sum up numbers over the ranks of a node, in place on the lowest one. */
static void add_up(void *numbers, void *sums, int count, const world_nodes *nodes)
{
    PMPI_Reduce(numbers, sums, count, MPI_UNSIGNED_LONG, MPI_SUM, 0, nodes->alike.sharing);
}

static void add_times(rank_span *span, MPI_Comm sharing)
{
    double own[3] = {span->wall, span->user, span->system}, sums[3] = {0.0, 0.0, 0.0};
    double most[2] = {span->wall, (double)span->threads}, found[2] = {0.0, 0.0};
    PMPI_Reduce(own, sums, 3, MPI_DOUBLE, MPI_SUM, 0, sharing);
    PMPI_Reduce(most, found, 2, MPI_DOUBLE, MPI_MAX, 0, sharing);
    span->wall = sums[0];
    span->user = sums[1];
    span->system = sums[2];
    span->longest_wall = found[0];
    span->threads = (size_t)found[1];
    PMPI_Comm_size(sharing, &span->of_ranks);
}

/* Have a rank's flows, by the ranks at their other end, as flows by nodes. */
static void by_node(counters *into, counters *from, const world_nodes *nodes)
{
    for (int direction = 0; direction < DIRECTION_COUNT; direction++)
        for (int kind = 0; kind < KIND_COUNT; kind++)
            for (int peer = 0; peer < (int)from->peers; peer++) {
                const flow *one = flow_of(from, (flow_direction)direction, (flow_kind)kind, peer);
                flow *sum = flow_of(into, (flow_direction)direction, (flow_kind)kind,
                                    nodes->of_rank[peer]);
                sum->messages += one->messages;
                sum->bytes += one->bytes;
            }
    memcpy(into->calls, from->calls, sizeof into->calls);
    into->unseen_receives = from->unseen_receives;
    into->outside_of_world = from->outside_of_world;
}

int sum_of_node(const world_nodes *nodes, counters *sum, uint64_t never_completed,
                rank_span *span, counters **whole)
{
    const size_t peers = (size_t)nodes->count;
    const int leads = nodes->alike.leaders != MPI_COMM_NULL;
    counters *own = counters_for(peers), *all = counters_for(peers);
    *whole = NULL;
    if (!all_have(own && all ? own : NULL)) {
        free(own);
        free(all);
        return -1;
    }
    if (sum)
        by_node(own, sum, nodes);
    uint64_t few[2] = {own->unseen_receives + never_completed, own->outside_of_world};
    uint64_t sums[2] = {0, 0};
    add_up(own->calls, all->calls, NUMBERS_OF(own->calls), nodes);
    add_up(own->flows, all->flows,
           DIRECTION_COUNT * KIND_COUNT * nodes->count * NUMBERS_OF(flow), nodes);
    add_up(few, sums, 2, nodes);
    all->unseen_receives = sums[0];
    all->outside_of_world = sums[1];
    add_times(span, nodes->alike.sharing);
    span->names = nodes->lowest;
    free(own);
    if (leads)
        *whole = all;
    else
        free(all);
    return 0;
}
