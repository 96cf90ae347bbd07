#include "multi_partition.h"

#include <mpi.h>
#include <stdlib.h>

static int modulo(int a, int b)
{
    return (a % b + b) % b;
}

static int rank_at(const multi_partition *p, int first, int second)
{
    return modulo(second, p->parts) * p->parts + modulo(first, p->parts);
}

/* The block at (x, y, z) is the rank's at (x - z, y - z), modulo the parts. */
int block_at(const multi_partition *p, int direction, int place)
{
    return direction == 2 ? place : modulo(place - p->place[direction], p->parts);
}

static int place_of(const multi_partition *p, int block, int direction)
{
    return direction == 2 ? block : modulo(block + p->place[direction], p->parts);
}

/* The most that is sent to one side: two layers of points of all blocks. */
size_t most_of_borders(const multi_partition *p, const int points[3])
{
    size_t most = 0;
    for (int d = 0; d < 3; d++) {
        size_t across = 1;
        for (int other = 0; other < 3; other++)
            if (other != d)
                across *= (size_t)(points[other] / p->parts + 1);
        if (across > most)
            most = across;
    }
    return most * GHOSTS * UNKNOWNS * (size_t)p->parts;
}

int divide_partition(multi_partition *p, const int points[3], int rank, int ranks)
{
    p->rank = rank;
    p->ranks = ranks;
    p->parts = 1;
    while ((long long)p->parts * p->parts < p->ranks)
        p->parts++;
    if (p->parts * p->parts != p->ranks)
        return -1;
    for (int d = 0; d < 3; d++)
        if (points[d] / p->parts < GHOSTS)
            return -1;
    p->place[0] = p->rank % p->parts;
    p->place[1] = p->rank / p->parts;
    for (int side = 0; side < 2; side++) {
        const int step = side == 0 ? -1 : 1;
        p->neighbour[0][side] = rank_at(p, p->place[0] + step, p->place[1]);
        p->neighbour[1][side] = rank_at(p, p->place[0], p->place[1] + step);
        p->neighbour[2][side] = rank_at(p, p->place[0] - step, p->place[1] - step);
    }
    return 0;
}

void describe_blocks(multi_partition *p, const int points[3])
{
    for (int i = 0; i < p->parts; i++) {
        int first[3], own[3];
        for (int d = 0; d < 3; d++) {
            const int place = place_of(p, i, d);
            first[d] = (int)first_of_part(points[d], p->parts, place);
            own[d] = (int)first_of_part(points[d], p->parts, place + 1) - first[d];
        }
        describe_flow(&p->blocks[i], points, first, own);
    }
}

void reserve_partition(const program_description *program, multi_partition *p, const int points[3])
{
    for (int i = 0; i < p->parts; i++)
        reserve_flow(program, &p->blocks[i]);
    const size_t most = most_of_borders(p, points);
    for (int side = 0; p->parts > 1 && side < 2; side++) {
        p->sent[side] = reserve(program, most, sizeof(double));
        p->received[side] = reserve(program, most, sizeof(double));
    }
}

void free_partition(const multi_partition *p)
{
    for (int i = 0; i < p->parts; i++)
        free_flow(&p->blocks[i]);
    free(p->blocks);
    for (int side = 0; side < 2; side++) {
        free(p->sent[side]);
        free(p->received[side]);
    }
}

/* Copy the borders of all blocks that have a neighbour at a side; in the same order as theirs. */
static size_t copy_borders(const multi_partition *p, int d, int side, double *packed,
                           int into_ghosts)
{
    size_t count = 0;
    for (int i = 0; i < p->parts; i++)
        if (place_of(p, i, d) != (side == 0 ? 0 : p->parts - 1))
            count += copy_border(&p->blocks[i], d, side, packed + count, into_ghosts);
    return count;
}

static int numbers_in_borders(const multi_partition *p, int d, int side)
{
    int count = 0;
    for (int i = 0; i < p->parts; i++)
        if (place_of(p, i, d) != (side == 0 ? 0 : p->parts - 1)) {
            const int *own = p->blocks[i].own;
            count += GHOSTS * UNKNOWNS * own[(d + 1) % 3] * own[(d + 2) % 3];
        }
    return count;
}

void fetch_neighbour_blocks(const multi_partition *p)
{
    for (int d = 0; p->parts > 1 && d < 3; d++) {
        MPI_Request requests[4];
        /* With two ranks in a direction both neighbours are one: tags tell the messages apart. */
        for (int side = 0; side < 2; side++)
            MPI_Irecv(p->received[side], numbers_in_borders(p, d, side), MPI_DOUBLE,
                      p->neighbour[d][side], 2 * d + side, MPI_COMM_WORLD, &requests[side]);
        for (int side = 0; side < 2; side++) {
            const size_t count = copy_borders(p, d, side, p->sent[side], 0);
            MPI_Isend(p->sent[side], (int)count, MPI_DOUBLE, p->neighbour[d][side],
                      2 * d + 1 - side, MPI_COMM_WORLD, &requests[2 + side]);
        }
        MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
        for (int side = 0; side < 2; side++)
            copy_borders(p, d, side, p->received[side], 1);
    }
    for (int i = 0; i < p->parts; i++)
        renew_derived(&p->blocks[i]);
}

void pass_on(const multi_partition *p, int direction, int to_side, double *sent, size_t count,
             double *received, size_t awaited)
{
    MPI_Sendrecv(sent, (int)count, MPI_DOUBLE, p->neighbour[direction][to_side], 6 + direction,
                 received, (int)awaited, MPI_DOUBLE, p->neighbour[direction][1 - to_side],
                 6 + direction, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}
