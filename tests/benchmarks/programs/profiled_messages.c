/* Every function for messages between two ranks, with known counts. */
#include <stdio.h>

#include "profiled_calls.h"

#define CALLS 3
#define DOUBLES 5
#define BYTES ((long)(DOUBLES * sizeof(double)))

static double out[64], in[64];

static void blocking(void)
{
    static char attached[4096 + MPI_BSEND_OVERHEAD];
    MPI_Status status;
    MPI_Buffer_attach(attached, (int)sizeof attached);
    for (int i = 0; i < CALLS; i++) {
        if (rank == 0) {
            MPI_Send(out, DOUBLES, MPI_DOUBLE, other, 0, MPI_COMM_WORLD);
            MPI_Bsend(out, DOUBLES, MPI_DOUBLE, other, 0, MPI_COMM_WORLD);
            MPI_Ssend(out, 0, MPI_DOUBLE, other, 0, MPI_COMM_WORLD);
        } else {
            MPI_Recv(in, 64, MPI_DOUBLE, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Recv(in, 64, MPI_DOUBLE, other, 0, MPI_COMM_WORLD, &status);
            MPI_Recv(in, 64, MPI_DOUBLE, other, 0, MPI_COMM_WORLD, &status);
        }
        /* In the other communicator the other rank has this one's number. */
        MPI_Sendrecv(out, DOUBLES, MPI_DOUBLE, rank, 1, in, 64, MPI_DOUBLE, rank, 1, turned,
                     MPI_STATUS_IGNORE);
        MPI_Sendrecv_replace(out, 1, MPI_DOUBLE, other, 2, other, 2, MPI_COMM_WORLD, &status);
        MPI_Send(out, DOUBLES, MPI_DOUBLE, MPI_PROC_NULL, 0, MPI_COMM_WORLD);
        MPI_Recv(in, 1, MPI_DOUBLE, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &status);
    }
    /* To a receive that is posted. */
    MPI_Request request;
    if (rank == 1)
        MPI_Irecv(in, 1, MPI_DOUBLE, other, 3, MPI_COMM_WORLD, &request);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        MPI_Rsend(out, 1, MPI_DOUBLE, other, 3, MPI_COMM_WORLD);
    else
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    int size;
    void *where;
    MPI_Buffer_detach(&where, &size);
    long n = rank == 0 ? CALLS : 0, m = rank == 1 ? CALLS : 0;
    EXPECT(Send, n + CALLS, n, n * BYTES, 0L, 0L);
    if (rank == 0) {
        EXPECT(Bsend, n, n, n * BYTES, 0L, 0L);
        EXPECT(Ssend, n, n, 0L, 0L, 0L);
        EXPECT(Rsend, 1L, 1L, 8L, 0L, 0L);
    } else {
        EXPECT(Irecv, 1L, 0L, 0L, 0L, 0L);
        EXPECT(Wait, 1L, 0L, 0L, 1L, 8L);
    }
    EXPECT(Recv, 3 * m + CALLS, 0L, 0L, 3 * m, 2 * m * BYTES);
    EXPECT(Sendrecv, (long)CALLS, (long)CALLS, CALLS * BYTES, (long)CALLS, CALLS * BYTES);
    EXPECT(Sendrecv_replace, (long)CALLS, (long)CALLS, 8L * CALLS, (long)CALLS, 8L * CALLS);
    EXPECT(Barrier, 1L, 0L, 0L, 0L, 0L);
}

static int by_waitsome(int count, MPI_Request *requests, MPI_Status *statuses)
{
    int done = 0, some, places[4];
    for (; done < count; done += some)
        MPI_Waitsome(count, requests, &some, places, statuses);
    return done;
}

/* All ways to send and to complete; what depends on chance is how often they are asked. */
static void non_blocking(void)
{
    int (*const sends[])(IN void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *) = {
        MPI_Isend, MPI_Ibsend, MPI_Issend};
    static char attached[4096 + MPI_BSEND_OVERHEAD];
    MPI_Buffer_attach(attached, (int)sizeof attached);
    MPI_Request requests[4];
    MPI_Status statuses[4];
    MPI_Datatype pair;
    int index, flag, size;
    for (int way = 0; way < 3; way++) {
        /* The type is freed while its messages are under way. */
        MPI_Type_contiguous(2, MPI_DOUBLE, &pair);
        MPI_Type_commit(&pair);
        for (int i = 0; i < 2; i++) {
            MPI_Irecv(in + 8 * i, 4, pair, MPI_ANY_SOURCE, i, turned, &requests[i]);
        }
        for (int i = 0; i < 2; i++)
            sends[way](out, 1 + i, pair, rank, i, turned, &requests[2 + i]);
        MPI_Type_free(&pair);
        if (way == 0) {
            MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
        } else if (way == 1) {
            for (int i = 0; i < 4; i++)
                MPI_Waitany(4, requests, &index, MPI_STATUS_IGNORE);
            MPI_Waitany(4, requests, &index, statuses);
        } else {
            by_waitsome(4, requests, statuses);
        }
    }
    void *where;
    MPI_Buffer_detach(&where, &size);
    EXPECT(Irecv, 6L, 0L, 0L, 0L, 0L);
    EXPECT(Isend, 2L, 2L, 48L, 0L, 0L);
    EXPECT(Ibsend, 2L, 2L, 48L, 0L, 0L);
    EXPECT(Issend, 2L, 2L, 48L, 0L, 0L);
    EXPECT(Waitall, 1L, 0L, 0L, 2L, 48L);
    EXPECT(Waitany, 5L, 0L, 0L, 2L, 48L);
    EXPECT(Waitsome, -1L, 0L, 0L, 2L, 48L);
    for (int way = 0; way < 4; way++) {
        for (int i = 0; i < 2; i++)
            MPI_Irecv(in + i, 1, MPI_DOUBLE, other, i, MPI_COMM_WORLD, &requests[i]);
        MPI_Barrier(MPI_COMM_WORLD);
        for (int i = 0; i < 2; i++)
            MPI_Irsend(out, 1, MPI_DOUBLE, other, i, MPI_COMM_WORLD, &requests[2 + i]);
        for (int done = 0, some = 0, places[4]; done < 4; done += some) {
            flag = some = 0;
            if (way == 0) {
                MPI_Test(&requests[done], &flag, MPI_STATUS_IGNORE);
            } else if (way == 1) {
                MPI_Testall(4, requests, &flag, MPI_STATUSES_IGNORE);
                some = flag ? 4 : 0;
                continue;
            } else if (way == 2) {
                MPI_Testany(4, requests, &index, &flag, statuses);
            } else {
                MPI_Testsome(4, requests, &some, places, MPI_STATUSES_IGNORE);
                continue;
            }
            some = flag;
        }
    }
    EXPECT(Irecv, 8L, 0L, 0L, 0L, 0L);
    EXPECT(Irsend, 8L, 8L, 64L, 0L, 0L);
    EXPECT(Barrier, 4L, 0L, 0L, 0L, 0L);
    EXPECT(Test, -1L, 0L, 0L, 2L, 16L);
    EXPECT(Testall, -1L, 0L, 0L, 2L, 16L);
    EXPECT(Testany, -1L, 0L, 0L, 2L, 16L);
    EXPECT(Testsome, -1L, 0L, 0L, 2L, 16L);
    /* A receive that is given up has received nothing, and one that is freed is not seen. */
    MPI_Irecv(in, 1, MPI_DOUBLE, other, 77, MPI_COMM_WORLD, requests);
    MPI_Cancel(requests);
    MPI_Wait(requests, statuses);
    MPI_Irecv(in, 1, MPI_DOUBLE, other, 78, MPI_COMM_WORLD, requests);
    MPI_Request_free(requests);
    MPI_Send(out, 1, MPI_DOUBLE, other, 78, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    EXPECT(Irecv, 2L, 0L, 0L, 0L, 0L);
    EXPECT(Cancel, 1L, 0L, 0L, 0L, 0L);
    EXPECT(Wait, 1L, 0L, 0L, 0L, 0L);
    EXPECT(Request_free, 1L, 0L, 0L, 0L, 0L);
    EXPECT(Send, 1L, 1L, 8L, 0L, 0L);
    EXPECT(Barrier, 1L, 0L, 0L, 0L, 0L);
}

static void persistent(void)
{
    int (*const inits[])(IN void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *) = {
        MPI_Send_init, MPI_Bsend_init, MPI_Ssend_init};
    static char attached[4096 + MPI_BSEND_OVERHEAD];
    MPI_Buffer_attach(attached, (int)sizeof attached);
    MPI_Request requests[4];
    MPI_Status status;
    MPI_Recv_init(in, 64, MPI_DOUBLE, rank, 5, turned, &requests[0]);
    for (int i = 0; i < 3; i++)
        inits[i](out, i + 1, MPI_DOUBLE, rank, 5, turned, &requests[1 + i]);
    /* Not started yet: nothing is received. */
    MPI_Wait(&requests[0], &status);
    for (int i = 0; i < 3; i++) {
        if (i == 2) {
            MPI_Request both[2] = {requests[0], requests[3]};
            MPI_Startall(2, both);
            MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
            continue;
        }
        MPI_Start(&requests[0]);
        MPI_Start(&requests[1 + i]);
        MPI_Wait(&requests[0], &status);
        MPI_Wait(&requests[1 + i], MPI_STATUS_IGNORE);
    }
    for (int i = 0; i < 4; i++)
        MPI_Request_free(&requests[i]);
    MPI_Request ready;
    MPI_Rsend_init(out, 1, MPI_DOUBLE, other, 5, MPI_COMM_WORLD, &ready);
    MPI_Request_free(&ready);
    int size;
    void *where;
    MPI_Buffer_detach(&where, &size);
    EXPECT(Recv_init, 1L, 0L, 0L, 0L, 0L);
    EXPECT(Send_init, 1L, 0L, 0L, 0L, 0L);
    EXPECT(Bsend_init, 1L, 0L, 0L, 0L, 0L);
    EXPECT(Ssend_init, 1L, 0L, 0L, 0L, 0L);
    EXPECT(Rsend_init, 1L, 0L, 0L, 0L, 0L);
    EXPECT(Wait, 5L, 0L, 0L, 2L, 24L);
    EXPECT(Start, 4L, 2L, 24L, 0L, 0L);
    EXPECT(Startall, 1L, 1L, 24L, 0L, 0L);
    EXPECT(Waitall, 1L, 0L, 0L, 1L, 24L);
    EXPECT(Request_free, 5L, 0L, 0L, 0L, 0L);
}

static void probing(void)
{
    MPI_Status status;
    MPI_Request request;
    int flag = 0;
    MPI_Isend(out, 1, MPI_DOUBLE, other, 6, MPI_COMM_WORLD, &request);
    MPI_Probe(other, 6, MPI_COMM_WORLD, &status);
    while (!flag)
        MPI_Iprobe(other, 6, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    MPI_Recv(in, 1, MPI_DOUBLE, other, 6, MPI_COMM_WORLD, &status);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    EXPECT(Isend, 1L, 1L, 8L, 0L, 0L);
    EXPECT(Probe, 1L, 0L, 0L, 0L, 0L);
    EXPECT(Iprobe, -1L, 0L, 0L, 0L, 0L);
    EXPECT(Recv, 1L, 0L, 0L, 1L, 8L);
    EXPECT(Wait, 1L, 0L, 0L, 0L, 0L);
#if HAS_MPI3
    MPI_Message message;
    MPI_Request requests[2];
    for (int i = 0; i < 2; i++)
        MPI_Isend(out, 2, MPI_DOUBLE, rank, 7 + i, turned, &requests[i]);
    MPI_Mprobe(MPI_ANY_SOURCE, 7, turned, &message, &status);
    MPI_Mrecv(in, 2, MPI_DOUBLE, &message, MPI_STATUS_IGNORE);
    for (flag = 0; !flag;)
        MPI_Improbe(rank, 8, turned, &flag, &message, &status);
    MPI_Imrecv(in, 2, MPI_DOUBLE, &message, &request);
    for (flag = 0; !flag;)
        MPI_Request_get_status(request, &flag, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    EXPECT(Isend, 2L, 2L, 32L, 0L, 0L);
    EXPECT(Mprobe, 1L, 0L, 0L, 0L, 0L);
    EXPECT(Mrecv, 1L, 0L, 0L, 1L, 16L);
    EXPECT(Improbe, -1L, 0L, 0L, 0L, 0L);
    EXPECT(Imrecv, 1L, 0L, 0L, 0L, 0L);
    EXPECT(Request_get_status, -1L, 0L, 0L, 0L, 0L);
    EXPECT(Wait, 1L, 0L, 0L, 1L, 16L);
    EXPECT(Waitall, 1L, 0L, 0L, 0L, 0L);
#endif
}

static void partitioned(void)
{
#if HAS_MPI4
    MPI_Request request, receive;
    int flag = 0, both[] = {2, 3};
    MPI_Psend_init(out, 4, 2, MPI_DOUBLE, other, 9, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    MPI_Precv_init(in, 4, 2, MPI_DOUBLE, other, 9, MPI_COMM_WORLD, MPI_INFO_NULL, &receive);
    for (int i = 0; i < 2; i++) {
        MPI_Start(&receive);
        MPI_Start(&request);
        MPI_Pready(0, request);
        MPI_Pready_range(1, 1, request);
        MPI_Pready_list(2, both, request);
        while (!flag)
            MPI_Parrived(receive, 0, &flag);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Wait(&receive, MPI_STATUS_IGNORE);
    }
    MPI_Request_free(&request);
    MPI_Request_free(&receive);
    EXPECT(Psend_init, 1L, 0L, 0L, 0L, 0L);
    EXPECT(Precv_init, 1L, 0L, 0L, 0L, 0L);
    EXPECT(Start, 4L, 2L, 128L, 0L, 0L);
    EXPECT(Pready, 2L, 0L, 0L, 0L, 0L);
    EXPECT(Pready_range, 2L, 0L, 0L, 0L, 0L);
    EXPECT(Pready_list, 2L, 0L, 0L, 0L, 0L);
    EXPECT(Parrived, -1L, 0L, 0L, 0L, 0L);
    EXPECT(Wait, 4L, 0L, 0L, 2L, 128L);
    EXPECT(Request_free, 2L, 0L, 0L, 0L, 0L);
    /* Their receives are not seen. */
    MPI_Isendrecv(out, 1, MPI_DOUBLE, other, 10, in, 1, MPI_DOUBLE, other, 10, MPI_COMM_WORLD,
                  &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Isendrecv_replace(out, 1, MPI_DOUBLE, other, 10, other, 10, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    EXPECT(Isendrecv, 1L, 1L, 8L, 0L, 0L);
    EXPECT(Isendrecv_replace, 1L, 1L, 8L, 0L, 0L);
    EXPECT(Wait, 2L, 0L, 0L, 0L, 0L);
#endif
}

void call_messages(void)
{
    blocking();
    non_blocking();
    persistent();
    probing();
    partitioned();
}
