#include "transfer.h"

#include <stdlib.h>
#include <string.h>

#include "../common/leaving.h"
#include "../common/standard.h"

#define PROGRAM "pairs"
enum { TAG_MESSAGE = 1, TAG_ANSWER };

const char *const transfer_names[] = {"send-recv", "irecv-send", "exchange", "window",
                                      "persistent", "partitioned", NULL};

static void send_one(transfer *t)
{
    MPI_Send(t->send, (int)t->bytes, MPI_BYTE, t->partner, TAG_MESSAGE, MPI_COMM_WORLD);
}

static void receive_one(transfer *t)
{
    MPI_Recv(t->receive, (int)t->bytes, MPI_BYTE, t->partner, TAG_MESSAGE, MPI_COMM_WORLD,
             MPI_STATUS_IGNORE);
}

/* LBW, synchronous. */
static void run_send_recv(transfer *t)
{
    if (t->begins) {
        send_one(t);
        receive_one(t);
    } else {
        receive_one(t);
        send_one(t);
    }
}

/* LBW, asynchronous: as NASA prints it, but the second rank waits before it answers; without that
 * both messages are under way at once and the round trip is not one. */
static void run_irecv_send(transfer *t)
{
    MPI_Request request;
    MPI_Irecv(t->receive, (int)t->bytes, MPI_BYTE, t->partner, TAG_MESSAGE, MPI_COMM_WORLD,
              &request);
    if (t->begins)
        send_one(t);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (!t->begins)
        send_one(t);
}

static void run_exchange(transfer *t)
{
    MPI_Request requests[2];
    MPI_Irecv(t->receive, (int)t->bytes, MPI_BYTE, t->partner, TAG_MESSAGE, MPI_COMM_WORLD,
              &requests[0]);
    MPI_Isend(t->send, (int)t->bytes, MPI_BYTE, t->partner, TAG_MESSAGE, MPI_COMM_WORLD,
              &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

static void reserve_requests(transfer *t, size_t count)
{
    t->requests = calloc(count, sizeof *t->requests);
    if (!t->requests)
        leave_at_once(PROGRAM, "no memory for the requests of a window");
}

static void open_window(transfer *t)
{
    reserve_requests(t, t->window);
}

static void close_window(transfer *t)
{
    free(t->requests);
}

static void run_window(transfer *t)
{
    const int bytes = (int)t->bytes;
    for (size_t m = 0; m < t->window; m++)
        if (t->begins)
            MPI_Isend(t->send + m * t->bytes, bytes, MPI_BYTE, t->partner, TAG_MESSAGE,
                      MPI_COMM_WORLD, &t->requests[m]);
        else
            MPI_Irecv(t->receive + m * t->bytes, bytes, MPI_BYTE, t->partner, TAG_MESSAGE,
                      MPI_COMM_WORLD, &t->requests[m]);
    MPI_Waitall((int)t->window, t->requests, MPI_STATUSES_IGNORE);
    if (t->begins)
        MPI_Recv(t->receive, 0, MPI_BYTE, t->partner, TAG_ANSWER, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    else
        MPI_Send(t->send, 0, MPI_BYTE, t->partner, TAG_ANSWER, MPI_COMM_WORLD);
}

static void open_persistent(transfer *t)
{
    reserve_requests(t, 2);
    MPI_Recv_init(t->receive, (int)t->bytes, MPI_BYTE, t->partner, TAG_MESSAGE, MPI_COMM_WORLD,
                  &t->requests[0]);
    MPI_Send_init(t->send, (int)t->bytes, MPI_BYTE, t->partner, TAG_MESSAGE, MPI_COMM_WORLD,
                  &t->requests[1]);
}

static void close_requests(transfer *t)
{
    MPI_Request_free(&t->requests[0]);
    MPI_Request_free(&t->requests[1]);
    free(t->requests);
}

static void run_persistent(transfer *t)
{
    MPI_Start(&t->requests[0]);
    if (t->begins)
        MPI_Start(&t->requests[1]);
    MPI_Wait(&t->requests[0], MPI_STATUS_IGNORE);
    if (!t->begins)
        MPI_Start(&t->requests[1]);
    MPI_Wait(&t->requests[1], MPI_STATUS_IGNORE);
}

#if HAS_MPI4
static void open_partitioned(transfer *t)
{
    const MPI_Count part = (MPI_Count)(t->bytes / (size_t)t->partitions);
    reserve_requests(t, 2);
    MPI_Precv_init(t->receive, t->partitions, part, MPI_BYTE, t->partner, TAG_MESSAGE,
                   MPI_COMM_WORLD, MPI_INFO_NULL, &t->requests[0]);
    MPI_Psend_init(t->send, t->partitions, part, MPI_BYTE, t->partner, TAG_MESSAGE,
                   MPI_COMM_WORLD, MPI_INFO_NULL, &t->requests[1]);
}

static void send_partitions(transfer *t)
{
    MPI_Start(&t->requests[1]);
    for (int part = 0; part < t->partitions; part++)
        MPI_Pready(part, t->requests[1]);
}

static void run_partitioned(transfer *t)
{
    MPI_Start(&t->requests[0]);
    if (t->begins)
        send_partitions(t);
    MPI_Wait(&t->requests[0], MPI_STATUS_IGNORE);
    if (!t->begins)
        send_partitions(t);
    MPI_Wait(&t->requests[1], MPI_STATUS_IGNORE);
}
#else
#define open_partitioned NULL
#define run_partitioned NULL
#endif

static const transfer_method methods[] = {
    {"send-recv", 0, 0, run_send_recv, NULL, NULL},
    {"irecv-send", 0, 0, run_irecv_send, NULL, NULL},
    {"exchange", 0, 0, run_exchange, NULL, NULL},
    {"window", 1, 0, run_window, open_window, close_window},
    {"persistent", 0, 0, run_persistent, open_persistent, close_requests},
    {"partitioned", 0, 1, run_partitioned, open_partitioned, close_requests},
};

const transfer_method *find_transfer(const char *name)
{
    for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++)
        if (strcmp(methods[i].name, name) == 0)
            return &methods[i];
    return NULL;
}

size_t messages_of(const transfer *t)
{
    return t->method->has_window ? t->window : 1;
}

int sends_messages(const transfer *t)
{
    return t->begins || !t->method->has_window;
}

int receives_messages(const transfer *t)
{
    return !t->begins || !t->method->has_window;
}

void run_transfer(void *context)
{
    transfer *t = context;
    if (t->takes_part)
        t->method->run(t);
}
