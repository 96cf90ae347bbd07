#include "datagrams.h"

#include <errno.h>
#include <mpi.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "../common/arguments.h"
#include "../common/leaving.h"
#include "partner.h"

/* Then the other rank is gone, or nothing passes. */
#define MOST_ATTEMPTS 20
/* How many of the first echoes may be lost before that means anything. */
#define FEWEST_LOSSES 10
#define TAG 78
/* Between two looks for rank 0's word that it has all echoes. */
#define LOOK_MS 1

static void fail(const partner *with, const char *what)
{
    complaint about;
    complain(&about, "udp, %zu bytes: rank %d %s", with->bytes, with->rank, what);
    leave_at_once("echo", about.text);
}

static void fail_with_errno(const partner *with, const char *what)
{
    complaint about;
    complain(&about, "%s: %s", what, strerror(errno));
    fail(with, about.text);
}

/* Receive a datagram of any size; each buffer has room for the largest. Returns its size, or -1
 * where none came in time. */
static ssize_t receive_datagram(const partner *with, unsigned char *buffer)
{
    for (;;) {
        ssize_t count = recv(with->datagrams, buffer, LARGEST_DATAGRAM, 0);
        if (count >= 0)
            return count;
        if (errno == EAGAIN || errno == EWOULDBLOCK)
            return -1;
        if (errno != EINTR)
            fail_with_errno(with, "cannot receive");
    }
}

static void send_datagram(const partner *with, const unsigned char *buffer, size_t bytes)
{
    while (send(with->datagrams, buffer, bytes, 0) < 0)
        /* Without room in a queue the datagram is lost, as it may be on its way. */
        if (errno == ENOBUFS || errno == EAGAIN || errno == EWOULDBLOCK)
            return;
        else if (errno != EINTR)
            fail_with_errno(with, "cannot send");
}

/* Whether what was received is the datagram of this echo, as far as it can be told. */
static int is_current(const partner *with, ssize_t count)
{
    if (count < 0 || (size_t)count != with->bytes)
        return 0;
    return !with->numbered ||
           memcmp(with->receive, &with->sequence, sizeof with->sequence) == 0;
}

/* Throw away what has come; with a wait, until nothing has for so long. Returns how many it were. */
static int drain(const partner *with, int wait_ms)
{
    unsigned char ignored;
    int count = 0;
    struct pollfd waiting = {with->datagrams, POLLIN, 0};
    while (poll(&waiting, 1, wait_ms) == 1)
        if (recv(with->datagrams, &ignored, sizeof ignored, MSG_DONTWAIT) >= 0)
            count++;
        else if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)
            fail_with_errno(with, "cannot receive");
    return count;
}

static void send_and_await(partner *with)
{
    with->echoes++;
    if (with->numbered)
        memcpy(with->send, &with->sequence, sizeof with->sequence);
    for (int attempt = 1; attempt <= MOST_ATTEMPTS; attempt++) {
        send_datagram(with, with->send, with->bytes);
        ssize_t count;
        do
            count = receive_datagram(with, with->receive);
        while (count >= 0 && !is_current(with, count));
        if (count >= 0) {
            /* The echo of the first attempt may still be on its way, and looks like the next. */
            if (attempt > 1 && !with->numbered)
                drain(with, QUIET_AFTER_LOSS_S * 1000);
            return;
        }
        with->sent_again++;
        /* Else it would take long to say in the end what is plain already. */
        if (with->sent_again > FEWEST_LOSSES &&
            with->sent_again * 100 > with->echoes * MOST_LOST_PERCENT)
            fail(with, "lost more than 1% of its datagrams");
        if (!with->numbered)
            drain(with, 0);
    }
    fail(with, "got no echo in any of its attempts of half a second each");
}

/* Whatever comes is sent back: what is not current is here because its echo was lost, or is late. */
static void await_and_return(partner *with)
{
    ssize_t count;
    int silent = 0;
    do {
        count = receive_datagram(with, with->receive);
        if (count >= 0)
            send_datagram(with, with->receive, (size_t)count);
        else if (++silent * LOST_AFTER_S > LONGEST_SILENCE_S)
            fail(with, "has heard nothing for too long");
    } while (!is_current(with, count));
}

void echo_datagram(void *context)
{
    partner *with = context;
    with->sequence++;
    if (with->rank == 0)
        send_and_await(with);
    else
        await_and_return(with);
}

/* Until rank 0 says that it has every echo, rank 1 keeps echoing: its last one may be lost. */
static void echo_until_told(const partner *with)
{
    MPI_Request request;
    char word = 0;
    int told = 0;
    MPI_Irecv(&word, 1, MPI_CHAR, 0, TAG, MPI_COMM_WORLD, &request);
    for (MPI_Test(&request, &told, MPI_STATUS_IGNORE); !told;
         MPI_Test(&request, &told, MPI_STATUS_IGNORE)) {
        struct pollfd waiting = {with->datagrams, POLLIN, 0};
        ssize_t count = -1;
        if (poll(&waiting, 1, LOOK_MS) == 1)
            count = receive_datagram(with, with->spare);
        if (count >= 0)
            send_datagram(with, with->spare, (size_t)count);
    }
}

void settle_datagrams(void *context)
{
    partner *with = context;
    char word = 0;
    if (with->rank == 1) {
        echo_until_told(with);
        drain(with, 0);
        MPI_Send(&word, 1, MPI_CHAR, 0, TAG, MPI_COMM_WORLD);
        return;
    }
    MPI_Send(&word, 1, MPI_CHAR, 1, TAG, MPI_COMM_WORLD);
    MPI_Recv(&word, 1, MPI_CHAR, 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (drain(with, 0) > 0 && !with->numbered)
        with->doubled = 1;
}
