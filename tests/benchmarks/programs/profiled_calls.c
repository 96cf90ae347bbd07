/* Calls of MPI with known counts, for the tests of the profile. It prints the truth: of each rank the
 * functions with their calls, messages and bytes, as profiled_calls.h says.
 *
 * usage: profiled_calls all|threads|large|late|abort|abort-unseen|kill, with two ranks */
#include "profiled_calls.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int rank, other;
MPI_Comm turned;
static double out[64], in[64];

void expect(const char *function, long calls, long sent, long bytes, long received,
            long received_bytes)
{
    printf("%d %s %ld %ld %ld %ld %ld\n", rank, function, calls, sent, bytes, received,
           received_bytes);
}

/* One function without messages of its own. */
#define EXPECT_CALLS(name, calls) EXPECT(name, (long)(calls), 0L, 0L, 0L, 0L)
/* The forms of a collective that this MPI has, each called once, with what this rank gives. */
#define COLLECTIVE(name, messages, bytes, ...) \
    do { \
        MPI_##name(__VA_ARGS__); \
        EXPECT(name, 1L, (long)(messages), (long)(bytes), 0L, 0L); \
    } while (0)
#if HAS_MPI3
#define NON_BLOCKING(name, messages, bytes, ...) \
    do { \
        MPI_##name(__VA_ARGS__, &request); \
        MPI_Wait(&request, MPI_STATUS_IGNORE); \
        EXPECT(name, 1L, (long)(messages), (long)(bytes), 0L, 0L); \
        EXPECT_CALLS(Wait, 1); \
    } while (0)
#else
#define NON_BLOCKING(name, messages, bytes, ...)
#endif
#if HAS_MPI4
#define PERSISTENT(name, messages, bytes, ...) \
    do { \
        MPI_##name(__VA_ARGS__, MPI_INFO_NULL, &request); \
        for (int i = 0; i < 2; i++) { \
            MPI_Start(&request); \
            MPI_Wait(&request, MPI_STATUS_IGNORE); \
        } \
        MPI_Request_free(&request); \
        EXPECT_CALLS(name, 1); \
        EXPECT(Start, 2L, 2L * (messages), 2L * (bytes), 0L, 0L); \
        EXPECT_CALLS(Wait, 2); \
        EXPECT_CALLS(Request_free, 1); \
    } while (0)
#else
#define PERSISTENT(name, messages, bytes, ...)
#endif
#define FORMS(name, non_blocking, messages, bytes, ...) \
    COLLECTIVE(name, messages, bytes, __VA_ARGS__); \
    NON_BLOCKING(non_blocking, messages, bytes, __VA_ARGS__); \
    PERSISTENT(name##_init, messages, bytes, __VA_ARGS__)

static void collectives(void)
{
    MPI_Request request;
    (void)request;
    int counts[2] = {1, 2}, places[2] = {0, 1}, ones[2] = {1, 1}, wide[2] = {0, 8};
    MPI_Datatype types[2] = {MPI_DOUBLE, MPI_DOUBLE};
    MPI_Comm world = MPI_COMM_WORLD;
    int root = rank == 0;
    FORMS(Barrier, Ibarrier, 0, 0, world);
    FORMS(Bcast, Ibcast, root, 24 * root, out, 3, MPI_DOUBLE, 0, world);
    FORMS(Gather, Igather, 1, 16, out, 2, MPI_DOUBLE, in, 2, MPI_DOUBLE, 0, world);
    FORMS(Gatherv, Igatherv, 1, 8 * (1 + other), out, 1 + other, MPI_DOUBLE, in, counts, places,
          MPI_DOUBLE, 0, turned);
    FORMS(Scatter, Iscatter, root, 32 * root, out, 2, MPI_DOUBLE, in, 2, MPI_DOUBLE, 0, world);
    FORMS(Scatterv, Iscatterv, root, 24 * root, out, counts, places, MPI_DOUBLE, in, counts[rank],
          MPI_DOUBLE, 0, world);
    FORMS(Allgather, Iallgather, 1, 16, out, 2, MPI_DOUBLE, in, 2, MPI_DOUBLE, world);
    FORMS(Allgatherv, Iallgatherv, 1, 8 * (1 + rank), out, 1 + rank, MPI_DOUBLE, in, counts,
          places, MPI_DOUBLE, world);
    FORMS(Alltoall, Ialltoall, 1, 32, out, 2, MPI_DOUBLE, in, 2, MPI_DOUBLE, turned);
    FORMS(Alltoallv, Ialltoallv, 1, 16, out, ones, places, MPI_DOUBLE, in, ones, places,
          MPI_DOUBLE, world);
    FORMS(Alltoallw, Ialltoallw, 1, 16, out, ones, wide, types, in, ones, wide, types, world);
    FORMS(Reduce, Ireduce, 1, 24, out, in, 3, MPI_DOUBLE, MPI_SUM, 0, world);
    FORMS(Allreduce, Iallreduce, 1, 24, out, in, 3, MPI_DOUBLE, MPI_SUM, world);
    FORMS(Scan, Iscan, 1, 8, out, in, 1, MPI_DOUBLE, MPI_SUM, world);
    FORMS(Exscan, Iexscan, 1, 8, out, in, 1, MPI_DOUBLE, MPI_SUM, world);
    FORMS(Reduce_scatter, Ireduce_scatter, 1, 24, out, in, counts, MPI_DOUBLE, MPI_SUM, world);
#if HAS_MPI3
    FORMS(Reduce_scatter_block, Ireduce_scatter_block, 1, 32, out, in, 2, MPI_DOUBLE, MPI_SUM,
          world);
    COLLECTIVE(Allgather, 1, 16, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, in, 2, MPI_DOUBLE, world);
    COLLECTIVE(Allgatherv, 1, 8 * (1 + rank), MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, in, counts, places,
               MPI_DOUBLE, world);
    COLLECTIVE(Alltoall, 1, 32, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, in, 2, MPI_DOUBLE, world);
    COLLECTIVE(Gather, 1, 16, root ? MPI_IN_PLACE : out, 2, MPI_DOUBLE, in, 2, MPI_DOUBLE, 0,
               world);
#endif
}

static void neighbours(void)
{
    MPI_Comm grid, graph, part;
    int extents[1] = {2}, open[1] = {0}, keep[1] = {1}, index[2] = {1, 2}, edges[2] = {1, 0};
    MPI_Cart_create(turned, 1, extents, open, 0, &grid);
    MPI_Cart_sub(grid, keep, &part);
    MPI_Graph_create(MPI_COMM_WORLD, 2, index, edges, 0, &graph);
    EXPECT_CALLS(Cart_create, 1);
    EXPECT_CALLS(Cart_sub, 1);
    EXPECT_CALLS(Graph_create, 1);
#if HAS_MPI3
    MPI_Request request;
    MPI_Comm adjacent, distributed;
    int degree = 1, counts[2] = {1, 1}, places[2] = {0, 1};
    MPI_Aint wide[2] = {0, 8};
    MPI_Datatype types[2] = {MPI_DOUBLE, MPI_DOUBLE};
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &other, MPI_UNWEIGHTED, 1, &other,
                                   MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &adjacent);
    MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &rank, &degree, &other, MPI_UNWEIGHTED, MPI_INFO_NULL,
                          0, &distributed);
    EXPECT_CALLS(Dist_graph_create_adjacent, 1);
    EXPECT_CALLS(Dist_graph_create, 1);
    /* One neighbour each: of the open row the other end, of the graphs the other rank. */
    FORMS(Neighbor_allgather, Ineighbor_allgather, 1, 8, out, 1, MPI_DOUBLE, in, 1, MPI_DOUBLE,
          grid);
    FORMS(Neighbor_allgatherv, Ineighbor_allgatherv, 1, 8, out, 1, MPI_DOUBLE, in, counts, places,
          MPI_DOUBLE, distributed);
    FORMS(Neighbor_alltoall, Ineighbor_alltoall, 1, 16, out, 2, MPI_DOUBLE, in, 2, MPI_DOUBLE,
          grid);
    FORMS(Neighbor_alltoallv, Ineighbor_alltoallv, 1, 8, out, counts, places, MPI_DOUBLE, in,
          counts, places, MPI_DOUBLE, graph);
    FORMS(Neighbor_alltoallw, Ineighbor_alltoallw, 1, 8, out, counts, wide, types, in, counts, wide,
          types, adjacent);
    MPI_Comm_free(&adjacent);
    MPI_Comm_free(&distributed);
    EXPECT_CALLS(Comm_free, 2);
#endif
    MPI_Comm_free(&grid);
    MPI_Comm_free(&graph);
    MPI_Comm_free(&part);
    EXPECT_CALLS(Comm_free, 3);
}

static void communicators(void)
{
    MPI_Comm made, between, merged, one;
    MPI_Group group;
    MPI_Comm_dup(turned, &made);
    MPI_Comm_group(made, &group);
    MPI_Comm_create(made, group, &one);
    MPI_Comm_free(&one);
    MPI_Comm_disconnect(&made);
    MPI_Comm_split(MPI_COMM_WORLD, rank, 0, &one);
    MPI_Intercomm_create(one, 0, MPI_COMM_WORLD, other, 11, &between);
    /* Between two groups a rank's number is of the other group. */
    MPI_Sendrecv(out, 1, MPI_DOUBLE, 0, 0, in, 1, MPI_DOUBLE, 0, 0, between, MPI_STATUS_IGNORE);
    MPI_Intercomm_merge(between, rank, &merged);
    MPI_Comm_free(&merged);
    MPI_Comm_free(&between);
    MPI_Comm_free(&one);
    EXPECT_CALLS(Comm_dup, 1);
    EXPECT_CALLS(Comm_create, 1);
    EXPECT_CALLS(Comm_disconnect, 1);
    EXPECT_CALLS(Comm_split, 1);
    EXPECT_CALLS(Intercomm_create, 1);
    EXPECT_CALLS(Intercomm_merge, 1);
    EXPECT_CALLS(Comm_free, 4);
    EXPECT(Sendrecv, 1L, 1L, 8L, 1L, 8L);
#if HAS_MPI3
    MPI_Request request;
    MPI_Comm_idup(turned, &made, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Comm_free(&made);
    MPI_Comm_dup_with_info(turned, MPI_INFO_NULL, &made);
    MPI_Comm_free(&made);
    MPI_Comm_split_type(turned, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &made);
    MPI_Comm_free(&made);
    MPI_Comm_create_group(turned, group, 0, &made);
    MPI_Comm_free(&made);
    EXPECT_CALLS(Comm_idup, 1);
    EXPECT_CALLS(Wait, 1);
    EXPECT_CALLS(Comm_dup_with_info, 1);
    EXPECT_CALLS(Comm_split_type, 1);
    EXPECT_CALLS(Comm_create_group, 1);
    EXPECT_CALLS(Comm_free, 4);
#endif
    MPI_Group_free(&group);
}

static void one_sided(void)
{
    static double memory[64];
    MPI_Win window;
    MPI_Group group;
    int flag = 0;
    MPI_Win_create(memory, (MPI_Aint)sizeof memory, 8, MPI_INFO_NULL, turned, &window);
    MPI_Win_fence(0, window);
    /* The window's ranks have changed places: this is to the other rank. */
    MPI_Put(out, 2, MPI_DOUBLE, rank, 0, 2, MPI_DOUBLE, window);
    MPI_Win_fence(0, window);
    MPI_Get(in, 3, MPI_DOUBLE, rank, 8, 3, MPI_DOUBLE, window);
    MPI_Win_fence(0, window);
    MPI_Accumulate(out, 1, MPI_DOUBLE, rank, 0, 1, MPI_DOUBLE, MPI_SUM, window);
    MPI_Win_fence(0, window);
    MPI_Comm_group(turned, &group);
    for (int i = 0; i < 2; i++) {
        MPI_Win_post(group, 0, window);
        MPI_Win_start(group, 0, window);
        MPI_Win_complete(window);
        if (i == 0)
            MPI_Win_wait(window);
        for (flag = i == 0; !flag;)
            MPI_Win_test(window, &flag);
    }
    MPI_Group_free(&group);
    EXPECT_CALLS(Win_create, 1);
    EXPECT_CALLS(Win_fence, 4);
    EXPECT(Put, 1L, 1L, 16L, 0L, 0L);
    EXPECT(Get, 1L, 0L, 0L, 1L, 24L);
    EXPECT(Accumulate, 1L, 1L, 8L, 0L, 0L);
    EXPECT_CALLS(Win_post, 2);
    EXPECT_CALLS(Win_start, 2);
    EXPECT_CALLS(Win_complete, 2);
    EXPECT_CALLS(Win_wait, 1);
    EXPECT_CALLS(Win_test, -1);
#if HAS_MPI3
    MPI_Request requests[4];
    double sum = 1, none = 0, result;
    MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, window);
    MPI_Win_flush(rank, window);
    MPI_Win_flush_local(rank, window);
    MPI_Win_sync(window);
    MPI_Win_unlock(rank, window);
    MPI_Win_lock_all(0, window);
    MPI_Rput(out, 1, MPI_DOUBLE, rank, 0, 1, MPI_DOUBLE, window, &requests[0]);
    MPI_Rget(in, 1, MPI_DOUBLE, rank, 8, 1, MPI_DOUBLE, window, &requests[1]);
    MPI_Raccumulate(out, 1, MPI_DOUBLE, rank, 16, 1, MPI_DOUBLE, MPI_SUM, window, &requests[2]);
    MPI_Rget_accumulate(out, 1, MPI_DOUBLE, &in[8], 1, MPI_DOUBLE, rank, 24, 1, MPI_DOUBLE, MPI_SUM,
                        window, &requests[3]);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    MPI_Get_accumulate(NULL, 0, MPI_DOUBLE, &in[16], 1, MPI_DOUBLE, rank, 32, 1, MPI_DOUBLE,
                       MPI_NO_OP, window);
    MPI_Win_flush_all(window);
    MPI_Fetch_and_op(&sum, &result, MPI_DOUBLE, rank, 40, MPI_SUM, window);
    MPI_Win_flush_local_all(window);
    int compared = 0, value = 1, before;
    (void)none;
    MPI_Compare_and_swap(&value, &compared, &before, MPI_INT, rank, 48, window);
    MPI_Win_unlock_all(window);
    EXPECT_CALLS(Win_lock, 1);
    EXPECT_CALLS(Win_flush, 1);
    EXPECT_CALLS(Win_flush_local, 1);
    EXPECT_CALLS(Win_sync, 1);
    EXPECT_CALLS(Win_unlock, 1);
    EXPECT_CALLS(Win_lock_all, 1);
    EXPECT(Rput, 1L, 1L, 8L, 0L, 0L);
    EXPECT(Rget, 1L, 0L, 0L, 1L, 8L);
    EXPECT(Raccumulate, 1L, 1L, 8L, 0L, 0L);
    EXPECT(Rget_accumulate, 1L, 1L, 8L, 1L, 8L);
    EXPECT_CALLS(Waitall, 1);
    EXPECT(Get_accumulate, 1L, 0L, 0L, 1L, 8L);
    EXPECT_CALLS(Win_flush_all, 1);
    EXPECT(Fetch_and_op, 1L, 1L, 8L, 1L, 8L);
    EXPECT_CALLS(Win_flush_local_all, 1);
    EXPECT(Compare_and_swap, 1L, 1L, 4L, 1L, 4L);
    EXPECT_CALLS(Win_unlock_all, 1);
    MPI_Win other_window;
    double *base;
    MPI_Win_allocate(64, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &other_window);
    MPI_Win_free(&other_window);
    MPI_Win_allocate_shared(64, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &other_window);
    MPI_Win_free(&other_window);
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &other_window);
    MPI_Win_free(&other_window);
    EXPECT_CALLS(Win_allocate, 1);
    EXPECT_CALLS(Win_allocate_shared, 1);
    EXPECT_CALLS(Win_create_dynamic, 1);
    EXPECT_CALLS(Win_free, 3);
#endif
    MPI_Win_free(&window);
    EXPECT_CALLS(Win_free, 1);
}

/* The forms of MPI-4 with large counts come from the same tables. */
static void large_counts(void)
{
#if HAS_LARGE_COUNTS
    MPI_Count counts[2] = {1, 1};
    MPI_Aint places[2] = {0, 1};
    MPI_Sendrecv_c(out, 5, MPI_DOUBLE, other, 0, in, 5, MPI_DOUBLE, other, 0, MPI_COMM_WORLD,
                   MPI_STATUS_IGNORE);
    COLLECTIVE(Alltoallv_c, 1, 16, out, counts, places, MPI_DOUBLE, in, counts, places, MPI_DOUBLE,
               turned);
    EXPECT(Sendrecv_c, 1L, 1L, 40L, 1L, 40L);
#endif
}

#define THREADS 4
#define EXCHANGES 200

static void *exchange(void *number)
{
    int tag = *(int *)number;
    double one = 1, two;
    MPI_Request request;
    for (int i = 0; i < EXCHANGES; i++) {
        MPI_Irecv(&two, 1, MPI_DOUBLE, rank, tag, turned, &request);
        MPI_Send(&one, 1, MPI_DOUBLE, rank, tag, turned);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    return NULL;
}

static void threads(void)
{
    pthread_t every[THREADS];
    int numbers[THREADS];
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i;
        if (pthread_create(&every[i], NULL, exchange, &numbers[i]) != 0)
            MPI_Abort(MPI_COMM_WORLD, 1);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(every[i], NULL);
    long all = THREADS * EXCHANGES;
    EXPECT(Irecv, all, 0L, 0L, 0L, 0L);
    EXPECT(Send, all, all, 8 * all, 0L, 0L);
    EXPECT(Wait, all, 0L, 0L, all, 8 * all);
}

/* Have whoever started this rank stand still for a while, so that it ends nobody meanwhile. */
static void hold_launcher(void)
{
    const pid_t launcher = getppid(), waker = fork();
    if (waker == 0) {
        sleep(2);
        kill(launcher, SIGCONT);
        _exit(0);
    }
    if (waker > 0)
        kill(launcher, SIGSTOP);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "all";
    int level;
    MPI_Init_thread(&argc, &argv, strcmp(what, "threads") ? MPI_THREAD_SINGLE : MPI_THREAD_MULTIPLE,
                    &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    other = 1 - rank;
    MPI_Comm_split(MPI_COMM_WORLD, 0, other, &turned);
    EXPECT_CALLS(Comm_split, 1);
    if (!strcmp(what, "threads") && level == MPI_THREAD_MULTIPLE)
        threads();
    if (!strcmp(what, "all")) {
        call_messages();
        collectives();
        neighbours();
        communicators();
        one_sided();
    }
    if (!strcmp(what, "large"))
        large_counts();
    fflush(stdout);
    if (!strcmp(what, "abort-unseen") && rank == 1)
        hold_launcher();
    if (!strncmp(what, "abort", 5) && rank == 1)
        MPI_Abort(MPI_COMM_WORLD, 3);
    if (!strcmp(what, "kill") && rank == 1)
        abort();
    MPI_Comm_free(&turned);
    EXPECT_CALLS(Comm_free, 1);
    fflush(stdout);
    if (!strcmp(what, "late") && rank == 1)
        sleep(2);
    MPI_Finalize();
    return 0;
}
