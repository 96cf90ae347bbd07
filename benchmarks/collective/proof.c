#include "proof.h"

#include <string.h>
#include <time.h>

#include "../common/buffers.h"
#include "calls.h"
#include "layout.h"

/* How often and how far apart a rank that comes late to a barrier looks for others that have left. */
#define LOOKS_FOR_EARLY 10
#define BETWEEN_LOOKS_NS 200000L

enum { TAG_LEFT = 1 };

/* Small whole numbers, so that every order of summation gives the same sum. */
static double element(size_t i, unsigned long long n, int rank)
{
    return (double)pattern(i, n, rank);
}

/* The number of the message in a block: with one for each rank, of the rank that takes it. */
static unsigned long long number_of(const call *c, unsigned long long n, size_t taker)
{
    return n * (unsigned)c->ranks + (c->what->send == ONE ? 0 : taker);
}

static void prepare_reduction(const call *c, unsigned long long n)
{
    size_t room[2];
    find_room(c->what, c->bytes, c->rank, c->ranks, c->in_place, room);
    double *receive = (double *)(void *)c->receive;
    for (size_t i = 0; i < room[1] / sizeof(double); i++)
        receive[i] = -1.0;
    double *given = c->in_place ? receive : (double *)(void *)c->send;
    for (size_t i = 0; i < room[0] / sizeof(double); i++)
        given[i] = element(i, n, c->first + c->rank);
}

/* Each rank has the pattern of its place in the world, so that data of the other half, which does the
 * same at the same time, are wrong. In place a rank's own blocks stand where those of others will. */
void prepare_collective(void *context, unsigned long long n)
{
    call *c = context;
    const int own = c->first + c->rank;
    if (c->what->reduces) {
        prepare_reduction(c, n);
        return;
    }
    const size_t given = blocks_of(c->what->send, c->rank, c->ranks);
    const size_t taken = blocks_of(c->what->receive, c->rank, c->ranks);
    for (size_t m = 0; m < given; m++)
        fill_pattern(c->send + start_of(c, c->to_start, m), count_to(c, m), number_of(c, n, m), own);
    for (size_t m = 0; m < taken; m++)
        fill_wrong(c->receive + start_of(c, c->from_start, m), count_from(c, m),
                   number_of(c, n, (size_t)c->rank), c->first + (int)m);
    if (!c->in_place || c->what->root_sends)
        return;
    for (size_t m = 0; m < taken; m++)
        if (c->what->send == OF_ALL || (int)m == c->rank)
            fill_pattern(c->receive + start_of(c, c->from_start, m), count_from(c, m),
                         number_of(c, n, m), own);
}

/* Prove that no rank leaves a barrier before all have entered it. Ranks in turn come late, and a
 * rank that has left sends it a message: one that is there before the late rank enters was sent too
 * early. What arrives later proves nothing, so a slow machine is never a fault. */
static long long verify_barrier(call *c, complaint *about)
{
    int early = 0;
    for (int turn = 0; turn < late_ranks(c->ranks); turn++) {
        const int late = late_rank(turn, c->ranks);
        if (c->rank != late) {
            c->run(c);
            MPI_Send(NULL, 0, MPI_BYTE, late, TAG_LEFT, c->comm);
            continue;
        }
        for (int look = 0; look < LOOKS_FOR_EARLY && !early; look++) {
            const struct timespec between_looks = {0, BETWEEN_LOOKS_NS};
            nanosleep(&between_looks, NULL);
            MPI_Iprobe(MPI_ANY_SOURCE, TAG_LEFT, c->comm, &early, MPI_STATUS_IGNORE);
        }
        c->run(c);
        /* From each by its rank: MPICH 5.0.2 over UCX never ends a receive from MPI_ANY_SOURCE whose
         * message is there before it. */
        for (int other = 0; other < c->ranks; other++)
            if (other != late)
                MPI_Recv(NULL, 0, MPI_BYTE, other, TAG_LEFT, c->comm, MPI_STATUS_IGNORE);
    }
    if (early)
        return complain(about, "%s: a rank left it before rank %d had entered it", c->what->name,
                        c->first + c->rank);
    return 0;
}

/* A sum of zeros stays one: with what it was of, sums in place would grow without end. */
static void calm(const call *c)
{
    size_t room[2];
    find_room(c->what, c->bytes, c->rank, c->ranks, c->in_place, room);
    memset(c->receive, 0, room[1]);
}

static long long verify_reduction(const call *c, unsigned long long n, complaint *about)
{
    const double *receive = (const double *)(const void *)c->receive;
    const reduced_ranks of = c->what->of;
    const int last = of == OF_EVERY_RANK ? c->ranks - 1 : of == UP_TO_OWN ? c->rank : c->rank - 1;
    /* With a block for each rank this one's stands behind those of the ranks before it. */
    const size_t before =
        c->what->send == OF_ALL ? start_of(c, c->to_start, (size_t)c->rank) / sizeof(double) : 0;
    if ((c->what->root_receives && c->rank != 0) || last < 0)
        return 0;
    for (size_t i = 0; i < count_from(c, 0); i++) {
        double right = element(before + i, n, c->first);
        for (int rank = 1; rank <= last; rank++) {
            const double other = element(before + i, n, c->first + rank);
            right = c->what->reduces == LEAST ? (other < right ? other : right) : right + other;
        }
        if (receive[i] != right)
            return complain(about, "%s, %zu bytes: element %zu is %g on rank %d, not %g",
                            c->what->name, c->bytes, i, receive[i], c->first + c->rank, right);
    }
    if (c->in_place)
        calm(c);
    /* Rank 0's part of a scan is its own. */
    return of == UP_TO_OWN && c->rank == 0 ? 0 : (long long)(sizeof(double) * count_from(c, 0));
}

long long verify_collective(void *context, unsigned long long n, complaint *about)
{
    call *c = context;
    if (c->what->is_barrier)
        return verify_barrier(c, about);
    if (c->bytes == 0)
        return 0;
    if (c->what->reduces)
        return verify_reduction(c, n, about);
    /* The root sends to itself, or not at all. */
    const size_t givers = c->what->root_sends && c->rank == 0
                              ? 0
                              : blocks_of(c->what->receive, c->rank, c->ranks);
    long long compared = 0;
    for (size_t giver = 0; giver < givers; giver++) {
        const long long wrong =
            find_difference(c->receive + start_of(c, c->from_start, giver), count_from(c, giver),
                            number_of(c, n, (size_t)c->rank), c->first + (int)giver);
        if (wrong >= 0)
            return complain(about, "%s, %zu bytes: rank %d has rank %d's data wrong from byte "
                                   "%lld on", c->what->name, c->bytes, c->first + c->rank,
                            c->first + (int)giver, wrong);
        if ((int)giver != c->rank)
            compared += (long long)count_from(c, giver);
    }
    return compared;
}
