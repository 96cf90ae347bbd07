#include "proof.h"

#include <string.h>
#include <time.h>

#include "../common/buffers.h"
#include "calls.h"

/* How often and how far apart a rank that comes late to a barrier looks for others that have left. */
#define LOOKS_FOR_EARLY 10
#define BETWEEN_LOOKS_NS 200000L

enum { TAG_LEFT = 1 };

/* Small whole numbers, so that every order of summation gives the same sum. */
static double element(size_t i, unsigned long long n, int rank)
{
    return (double)pattern(i, n, rank);
}

/* Each rank has the pattern of its place in the world, so that data of the other half, which does the
 * same at the same time, are wrong. */
void prepare_collective(void *context, unsigned long long n)
{
    call *c = context;
    const unsigned long long messages = (unsigned)c->ranks;
    const size_t sent = messages_of(c->what->send, c->rank, c->ranks);
    const size_t received = messages_of(c->what->receive, c->rank, c->ranks);
    if (c->what->reduces) {
        double *send = (double *)(void *)c->send, *receive = (double *)(void *)c->receive;
        for (size_t i = 0; i < (size_t)doubles(c); i++) {
            send[i] = element(i, n, c->first + c->rank);
            receive[i] = -1.0;
        }
        return;
    }
    for (size_t m = 0; m < sent; m++)
        fill_pattern(c->send + m * c->bytes, c->bytes, n * messages + m, c->first + c->rank);
    for (size_t m = 0; m < received; m++)
        fill_wrong(c->receive + m * c->bytes, c->bytes,
                   n * messages + (c->what->send == ONE ? 0 : (unsigned)c->rank), c->first + (int)m);
}

/* Prove that no rank leaves a barrier before all have entered it. Each rank in turn comes late, and a
 * rank that has left sends it a message: one that is there before the late rank enters was sent too
 * early. What arrives later proves nothing, so a slow machine is never a fault. */
static long long verify_barrier(const call *c, complaint *about)
{
    int early = 0;
    for (int late = 0; late < c->ranks; late++) {
        if (c->rank != late) {
            MPI_Barrier(c->comm);
            MPI_Send(NULL, 0, MPI_BYTE, late, TAG_LEFT, c->comm);
            continue;
        }
        for (int look = 0; look < LOOKS_FOR_EARLY && !early; look++) {
            nanosleep(&(struct timespec){0, BETWEEN_LOOKS_NS}, NULL);
            MPI_Iprobe(MPI_ANY_SOURCE, TAG_LEFT, c->comm, &early, MPI_STATUS_IGNORE);
        }
        MPI_Barrier(c->comm);
        for (int other = 1; other < c->ranks; other++)
            MPI_Recv(NULL, 0, MPI_BYTE, MPI_ANY_SOURCE, TAG_LEFT, c->comm, MPI_STATUS_IGNORE);
    }
    if (early)
        return complain(about, "barrier: a rank left it before rank %d had entered it",
                        c->first + c->rank);
    return 0;
}

static long long verify_reduction(const call *c, unsigned long long n, complaint *about)
{
    const double *receive = (const double *)(const void *)c->receive;
    const int least = strstr(c->what->name, "min") != NULL;
    if (c->what->root_receives && c->rank != 0)
        return 0;
    for (size_t i = 0; i < (size_t)doubles(c); i++) {
        double right = element(i, n, c->first);
        for (int rank = 1; rank < c->ranks; rank++) {
            double other = element(i, n, c->first + rank);
            right = least ? (other < right ? other : right) : right + other;
        }
        if (receive[i] != right)
            return complain(about, "%s, %zu bytes: element %zu is %g on rank %d, not %g",
                            c->what->name, c->bytes, i, receive[i], c->first + c->rank, right);
    }
    return (long long)c->bytes;
}

long long verify_collective(void *context, unsigned long long n, complaint *about)
{
    const call *c = context;
    if (is_barrier(c->what))
        return verify_barrier(c, about);
    if (c->bytes == 0)
        return 0;
    if (c->what->reduces)
        return verify_reduction(c, n, about);
    if ((c->what->root_receives && c->rank != 0))
        return 0;
    const size_t senders = c->what->receive == ONE ? 1 : (size_t)c->ranks;
    const unsigned long long number =
        n * (unsigned)c->ranks + (c->what->send == ONE ? 0 : (unsigned)c->rank);
    long long compared = 0;
    for (size_t sender = 0; sender < senders; sender++) {
        if (c->what->receive == ONE && c->rank == 0)
            continue; /* The root sends to itself, or not at all. */
        long long wrong = find_difference(c->receive + sender * c->bytes, c->bytes,
                                          number, c->first + (int)sender);
        if (wrong >= 0)
            return complain(about, "%s, %zu bytes: rank %d has rank %d's data wrong from byte "
                                   "%lld on", c->what->name, c->bytes, c->first + c->rank,
                            c->first + (int)sender, wrong);
        if ((int)sender != c->rank)
            compared += (long long)c->bytes;
    }
    return compared;
}
