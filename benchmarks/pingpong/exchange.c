#include "exchange.h"

#include <string.h>

#define TAG 1

static const send_receive_pair all_pairs[] = {
    {"Send/Recv", 0, 0, 0},  {"Send/Irecv", 0, 0, 1},  {"Isend/Recv", 1, 0, 0},
    {"Isend/Irecv", 1, 0, 1}, {"Ssend/Recv", 0, 1, 0},  {"Ssend/Irecv", 0, 1, 1},
    {"Issend/Recv", 1, 1, 0}, {"Issend/Irecv", 1, 1, 1},
};

const char *const pair_names[] = {"Send/Recv",  "Send/Irecv",  "Isend/Recv",  "Isend/Irecv",
                                  "Ssend/Recv", "Ssend/Irecv", "Issend/Recv", "Issend/Irecv",
                                  NULL};

const send_receive_pair *find_pair(const char *name)
{
    for (size_t i = 0; i < sizeof all_pairs / sizeof all_pairs[0]; i++)
        if (strcmp(name, all_pairs[i].name) == 0)
            return &all_pairs[i];
    return NULL;
}

/* Start the send; a blocking one is complete on return and leaves a null request. */
static MPI_Request start_send(const send_receive_pair *pair, const message *message, int to)
{
    MPI_Request request = MPI_REQUEST_NULL;
    if (pair->send_nonblocking && pair->send_synchronous)
        MPI_Issend(message->send, message->count, message->type, to, TAG, MPI_COMM_WORLD, &request);
    else if (pair->send_nonblocking)
        MPI_Isend(message->send, message->count, message->type, to, TAG, MPI_COMM_WORLD, &request);
    else if (pair->send_synchronous)
        MPI_Ssend(message->send, message->count, message->type, to, TAG, MPI_COMM_WORLD);
    else
        MPI_Send(message->send, message->count, message->type, to, TAG, MPI_COMM_WORLD);
    return request;
}

static void finish_send(const send_receive_pair *pair, MPI_Request *request)
{
    if (pair->send_nonblocking)
        MPI_Wait(request, MPI_STATUS_IGNORE);
}

static MPI_Request start_receive(const message *message, int from)
{
    MPI_Request request;
    MPI_Irecv(message->receive, message->count, message->type, from, TAG, MPI_COMM_WORLD, &request);
    return request;
}

static void receive(const message *message, int from)
{
    MPI_Recv(message->receive, message->count, message->type, from, TAG, MPI_COMM_WORLD,
             MPI_STATUS_IGNORE);
}

void send_and_await(const send_receive_pair *pair, const message *message)
{
    if (pair->receive_nonblocking) {
        MPI_Request reply = start_receive(message, 1);
        MPI_Request sent = start_send(pair, message, 1);
        MPI_Wait(&reply, MPI_STATUS_IGNORE);
        finish_send(pair, &sent);
    } else {
        MPI_Request sent = start_send(pair, message, 1);
        receive(message, 1);
        finish_send(pair, &sent);
    }
}

void echo(const send_receive_pair *pair, echo_order order, const message *message)
{
    if (!pair->receive_nonblocking) {
        receive(message, 0);
        MPI_Request sent = start_send(pair, message, 0);
        finish_send(pair, &sent);
        return;
    }
    MPI_Request arrival = start_receive(message, 0);
    if (order == ORDER_MODIFIED)
        MPI_Wait(&arrival, MPI_STATUS_IGNORE);
    MPI_Request sent = start_send(pair, message, 0);
    if (order == ORDER_ORIGINAL)
        MPI_Wait(&arrival, MPI_STATUS_IGNORE);
    finish_send(pair, &sent);
}
