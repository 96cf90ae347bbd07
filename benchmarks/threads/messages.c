#include "messages.h"

#include <sched.h>
#include <string.h>

#include "../common/standard.h"
#include "team.h"

enum { TAG_ANSWER = 1, TAG_MESSAGE };

const char *const threads_method_names[] = {"communicators", "tags", "partitioned", NULL};

/* Rank 0 sends, and what it gets when the last message is there ends an iteration. */
static void answer(const messages *all)
{
    if (all->rank == 0)
        MPI_Recv(NULL, 0, MPI_BYTE, 1, TAG_ANSWER, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else
        MPI_Send(NULL, 0, MPI_BYTE, 0, TAG_ANSWER, MPI_COMM_WORLD);
}

static void exchange(messages *all, size_t thread, MPI_Comm comm, int tag)
{
    MPI_Request *requests = all->requests + thread * all->window;
    for (size_t m = 0; m < all->window; m++) {
        unsigned char *message = all->buffer + (thread * all->window + m) * all->bytes;
        if (all->rank == 0)
            MPI_Isend(message, (int)all->bytes, MPI_BYTE, 1, tag, comm, &requests[m]);
        else
            MPI_Irecv(message, (int)all->bytes, MPI_BYTE, 0, tag, comm, &requests[m]);
    }
    MPI_Waitall((int)all->window, requests, MPI_STATUSES_IGNORE);
}

static void exchange_by_communicator(void *context, size_t thread)
{
    messages *all = context;
    exchange(all, thread, all->comms[thread], TAG_MESSAGE);
}

static void exchange_by_tag(void *context, size_t thread)
{
    exchange(context, thread, MPI_COMM_WORLD, TAG_MESSAGE + (int)thread);
}

static void open_communicators(messages *all)
{
    for (size_t t = 0; t < all->threads; t++)
        MPI_Comm_dup(MPI_COMM_WORLD, &all->comms[t]);
}

static void close_communicators(messages *all)
{
    for (size_t t = 0; t < all->threads; t++)
        MPI_Comm_free(&all->comms[t]);
}

static void run_communicators(void *context)
{
    do_together(exchange_by_communicator, context);
    answer(context);
}

static void run_tags(void *context)
{
    do_together(exchange_by_tag, context);
    answer(context);
}

#if HAS_MPI4
static void open_partitioned(messages *all)
{
    const int parts = (int)(all->threads * all->window);
    const MPI_Count bytes = (MPI_Count)all->bytes;
    if (all->rank == 0)
        MPI_Psend_init(all->buffer, parts, bytes, MPI_BYTE, 1, TAG_MESSAGE, MPI_COMM_WORLD,
                       MPI_INFO_NULL, &all->whole);
    else
        MPI_Precv_init(all->buffer, parts, bytes, MPI_BYTE, 0, TAG_MESSAGE, MPI_COMM_WORLD,
                       MPI_INFO_NULL, &all->whole);
}

static void close_partitioned(messages *all)
{
    MPI_Request_free(&all->whole);
}

/* A thread says of each of its parts that it may go, or looks until it is there. */
static void exchange_parts(void *context, size_t thread)
{
    messages *all = context;
    const int first = (int)(thread * all->window);
    for (int part = first; part < first + (int)all->window; part++) {
        if (all->rank == 0) {
            MPI_Pready(part, all->whole);
            continue;
        }
        for (int is_there = 0; !is_there;) {
            MPI_Parrived(all->whole, part, &is_there);
            if (!is_there)
                sched_yield(); /* To whom it may be that gets it here. */
        }
    }
}

static void run_partitioned(void *context)
{
    messages *all = context;
    MPI_Start(&all->whole);
    do_together(exchange_parts, all);
    MPI_Wait(&all->whole, MPI_STATUS_IGNORE);
    answer(all);
}
#else
#define open_partitioned NULL
#define close_partitioned NULL
#define run_partitioned NULL
#endif

static const threads_method methods[] = {
    {"communicators", open_communicators, close_communicators, run_communicators},
    {"tags", NULL, NULL, run_tags},
    {"partitioned", open_partitioned, close_partitioned, run_partitioned},
};

const threads_method *find_threads_method(const char *name)
{
    for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++)
        if (strcmp(methods[i].name, name) == 0)
            return &methods[i];
    return NULL;
}
