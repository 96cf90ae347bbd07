#include "layout.h"

#include <stdlib.h>

size_t blocks_of(extent what, int rank, int ranks)
{
    return what == ONE ? 1 : what == OF_ALL || rank == 0 ? (size_t)ranks : 0;
}

/* What the calls count in. */
static size_t unit_of(const collective *what)
{
    return what->reduces ? sizeof(double) : 1;
}

size_t block_bytes(const collective *what, size_t bytes, int ranks, int giver, int taker)
{
    if (!what->unequal)
        return bytes;
    const size_t unit = unit_of(what);
    const int place = what->send == ONE      ? giver
                      : what->receive == ONE ? taker
                                             : (giver + taker) % ranks;
    return unit * (bytes / unit * 2 * ((size_t)place + 1) / ((size_t)ranks + 1));
}

void find_room(const collective *what, size_t bytes, int rank, int ranks, int in_place,
               size_t room[2])
{
    const size_t given = blocks_of(what->send, rank, ranks);
    const size_t taken = blocks_of(what->receive, rank, ranks);
    room[0] = room[1] = 0;
    if (what->is_barrier)
        return;
    for (size_t other = 0; other < given; other++)
        room[0] += block_bytes(what, bytes, ranks, rank, (int)other);
    for (size_t other = 0; other < taken; other++)
        room[1] += block_bytes(what, bytes, ranks, (int)other, rank);
    if (in_place && what->reduces && room[0] > room[1])
        room[1] = room[0];
}

size_t start_of(const call *c, const int *starts, size_t other)
{
    return c->what->unequal ? unit_of(c->what) * (size_t)starts[other] : other * c->bytes;
}

size_t count_to(const call *c, size_t other)
{
    return c->what->unequal ? (size_t)c->to[other] : c->bytes / unit_of(c->what);
}

size_t count_from(const call *c, size_t other)
{
    return c->what->unequal ? (size_t)c->from[other] : c->bytes / unit_of(c->what);
}

int late_ranks(int ranks)
{
    return ranks < MOST_LATE ? ranks : MOST_LATE;
}

int late_rank(int turn, int ranks)
{
    return ranks < 2 ? 0 : (int)((long long)turn * (ranks - 1) / (late_ranks(ranks) - 1));
}

size_t layout_bytes(const collective *what, int ranks)
{
    return what->unequal ? (size_t)ranks * (4 * sizeof(int) + sizeof(MPI_Datatype)) : 0;
}

int lay_out(call *c)
{
    if (layout_bytes(c->what, c->ranks) == 0)
        return 0;
    const size_t ranks = (size_t)c->ranks;
    c->to = calloc(4 * ranks, sizeof *c->to);
    c->types = malloc(ranks * sizeof *c->types);
    if (!c->to || !c->types)
        return -1;
    c->to_start = c->to + ranks;
    c->from = c->to_start + ranks;
    c->from_start = c->from + ranks;
    const size_t unit = unit_of(c->what);
    for (size_t i = 0; i < ranks; i++) {
        c->to[i] = (int)(block_bytes(c->what, c->bytes, c->ranks, c->rank, (int)i) / unit);
        c->from[i] = (int)(block_bytes(c->what, c->bytes, c->ranks, (int)i, c->rank) / unit);
        c->types[i] = MPI_BYTE;
        if (i > 0) {
            c->to_start[i] = c->to_start[i - 1] + c->to[i - 1];
            c->from_start[i] = c->from_start[i - 1] + c->from[i - 1];
        }
    }
    return 0;
}

void free_layout(call *c)
{
    free(c->to);
    free(c->types);
}
