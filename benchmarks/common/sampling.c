#include "sampling.h"

#include <math.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "clock_offsets.h"
#include "summary.h"

/* The standard normal distribution's 97.5% quantile. */
#define NORMAL_QUANTILE 1.959963984540054
/* Below this the interval's ranks say nothing (Hoefler and Belli 2015). */
#define FEWEST_FOR_INTERVAL 6
/* Of SKaMPI: windows are doubled where more than a quarter of the iterations began late. */
#define TOLERATED_LATE 0.25
#define FIRST_WINDOW_FACTOR 4.0
#define SHORTEST_WINDOW_S 50e-6
#define LONGEST_WINDOW_S 10.0
#define MOST_BATCHES_WITHOUT 8
/* The interval is looked at again when the iterations have grown by this part: each look sorts them
 * all, which after every batch would take longer than many short iterations themselves. */
#define GROWTH_BETWEEN_LOOKS 8

const char *const synchronisation_names[] = {"barrier", "window", "none", NULL};

/* One batch as this rank saw it: by MPI_Wtime, corrected to rank 0's clock with a window. */
typedef struct {
    double *began, *ended;
    int *late;
    size_t count;
} batch;

static int all_agree(int failed)
{
    int any = failed;
    MPI_Allreduce(&failed, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    return any;
}

static int reserve_batch(batch *batch, size_t count)
{
    batch->began = calloc(count, sizeof *batch->began);
    batch->ended = calloc(count, sizeof *batch->ended);
    batch->late = calloc(count, sizeof *batch->late);
    batch->count = count;
    return all_agree(!batch->began || !batch->ended || !batch->late) ? -1 : 0;
}

static void free_batch(batch *batch)
{
    free(batch->began);
    free(batch->ended);
    free(batch->late);
}

static void run_once(const operation *operation)
{
    if (operation->before)
        operation->before(operation->context);
    operation->run(operation->context);
}

void settle_runs(const operation *operation)
{
    if (operation->settle)
        operation->settle(operation->context);
}

static void run_batch(const operation *operation, batch *batch, int with_barrier)
{
    for (size_t i = 0; i < batch->count; i++) {
        if (operation->before)
            operation->before(operation->context);
        if (with_barrier)
            MPI_Barrier(MPI_COMM_WORLD);
        batch->began[i] = MPI_Wtime();
        operation->run(operation->context);
        batch->ended[i] = MPI_Wtime();
        if (with_barrier || i + 1 == batch->count)
            settle_runs(operation);
    }
}

/* Every iteration begins at its own time by rank 0's clock; `window` is the time between two. */
static void run_windows(const operation *operation, batch *batch, const clock_offset *clock,
                        double window)
{
    double start = MPI_Wtime() + clock->offset + window;
    MPI_Bcast(&start, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    start += window;
    for (size_t i = 0; i < batch->count; i++) {
        double begin = start + (double)i * window;
        if (operation->before)
            operation->before(operation->context);
        batch->late[i] = MPI_Wtime() + clock->offset > begin;
        while (MPI_Wtime() + clock->offset < begin)
            ;
        batch->began[i] = MPI_Wtime() + clock->offset;
        operation->run(operation->context);
        batch->ended[i] = MPI_Wtime() + clock->offset;
    }
    settle_runs(operation);
}

static int clock_went_back(const batch *batch)
{
    for (size_t i = 0; i < batch->count; i++)
        if (batch->ended[i] < batch->began[i] || (i && batch->began[i] < batch->ended[i - 1]))
            return 1;
    return 0;
}

/* Add this batch's iterations to the samples of rank 0, and to the rank's own times. */
static int add_batch(const operation *operation, const batch *batch, int with_window,
                     samples *taken, double **own, size_t *own_count, double *work)
{
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    double *grown = realloc(*own, (*own_count + batch->count) * sizeof *grown);
    int failed = !grown;
    if (grown)
        *own = grown;
    if (rank == 0) {
        grown = realloc(taken->times, (taken->count + batch->count) * sizeof *grown);
        failed |= !grown;
        if (grown)
            taken->times = grown;
    }
    if (all_agree(failed))
        return -1;
    for (size_t i = 0; i < batch->count; i++)
        (*own)[(*own_count)++] = batch->ended[i] - batch->began[i];
    int count = (int)batch->count;
    double *one = work, *other = work + batch->count;
    int *late = (int *)(void *)(work + 2 * batch->count);
    if (with_window) {
        MPI_Reduce(batch->began, one, count, MPI_DOUBLE, MPI_MIN, 0, MPI_COMM_WORLD);
        MPI_Reduce(batch->ended, other, count, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
        MPI_Reduce(batch->late, late, count, MPI_INT, MPI_MAX, 0, MPI_COMM_WORLD);
    } else {
        MPI_Reduce(*own + *own_count - batch->count, other, count, MPI_DOUBLE, MPI_MAX, 0,
                   MPI_COMM_WORLD);
    }
    if (rank != 0)
        return 0;
    for (size_t i = 0; i < batch->count; i++) {
        if (with_window && late[i])
            taken->discarded++;
        else if (operation->timed_by_rank_0)
            taken->times[taken->count++] = batch->ended[i] - batch->began[i];
        else
            taken->times[taken->count++] = with_window ? other[i] - one[i] : other[i];
    }
    return 0;
}

/* Whether the median's interval by ranks (Hoefler and Belli 2015) is as narrow as wanted. */
static int narrow_enough(const samples *taken, double relative_width, double *work)
{
    if (relative_width <= 0.0)
        return 1;
    if (taken->count < FEWEST_FOR_INTERVAL)
        return 0;
    memcpy(work, taken->times, taken->count * sizeof *work);
    time_summary summary = summarise(taken->times, taken->count, work); /* Sorts `work`. */
    double n = (double)taken->count, spread = NORMAL_QUANTILE * sqrt(n);
    size_t low = (size_t)fmax(0.0, floor((n - spread) / 2) - 1);
    size_t high = (size_t)fmin(n - 1, ceil(1 + (n + spread) / 2) - 1);
    return work[high] - work[low] <= relative_width * summary.median;
}

static double first_window(const operation *operation, long long warmup)
{
    double longest = 0.0;
    for (long long i = 0; i < warmup || i < 2; i++) {
        double began = MPI_Wtime();
        run_once(operation);
        double took = MPI_Wtime() - began;
        if (i && took > longest)
            longest = took;
    }
    settle_runs(operation);
    double of_all = longest;
    MPI_Allreduce(&longest, &of_all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return fmin(LONGEST_WINDOW_S, fmax(SHORTEST_WINDOW_S, FIRST_WINDOW_FACTOR * of_all));
}

/* Of --estimate: seconds from one iteration to the next, the mean of a batch's: a sweep takes the sum
 * of all, pauses included. */
static double seconds_of_each(const batch *batch)
{
    const size_t last = batch->count - 1;
    if (last == 0)
        return batch->ended[0] - batch->began[0];
    return (batch->began[last] - batch->began[0]) / (double)last;
}

static int medians_of_ranks(const double *own, size_t count, samples *taken, double *work)
{
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (rank == 0)
        taken->median_by_rank = calloc((size_t)ranks, sizeof *taken->median_by_rank);
    if (all_agree(rank == 0 && !taken->median_by_rank))
        return -1;
    double median = summarise(own, count, work).median;
    MPI_Gather(&median, 1, MPI_DOUBLE, taken->median_by_rank, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    return 0;
}

static size_t smaller(size_t one, size_t other)
{
    return one < other ? one : other;
}

int take_samples(const sampling *plan, const operation *operation, samples *taken,
                 complaint *about)
{
    int rank, status = -1, more = 1, without = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    *taken = (samples){0};
    const int with_window = strcmp(plan->synchronisation, "window") == 0;
    const int with_barrier = strcmp(plan->synchronisation, "barrier") == 0;
    const size_t most = (size_t)(plan->relative_width > 0.0 ? plan->most_iterations
                                                             : plan->iterations);
    const size_t of_batch = plan->estimate ? (size_t)few_iterations(plan->iterations)
                                           : smaller((size_t)plan->iterations, most);
    size_t done = 0, next_look = 0;
    double *own = NULL, *work = calloc(most > 3 * of_batch ? most : 3 * of_batch, sizeof *work);
    size_t own_count = 0;
    batch batch;
    if (reserve_batch(&batch, of_batch) || all_agree(!work)) {
        complain(about, "no memory for the times of %zu iterations", most);
        goto out;
    }
    const long long warmup = plan->estimate ? few_warmups(plan->warmup) : plan->warmup;
    double window = 0.0, comparing_clocks = 0.0;
    clock_offset clock = {0.0, 0.0};
    if (with_window)
        window = first_window(operation, warmup);
    else
        for (long long i = 0; i < warmup; i++)
            run_once(operation);
    settle_runs(operation);
    MPI_Barrier(MPI_COMM_WORLD);
    while (more) {
        /* The last batch may be shorter. */
        batch.count = done < most ? smaller(of_batch, most - done) : of_batch;
        size_t late_before = taken->discarded;
        if (with_window) {
            /* Again for each batch: clocks drift. */
            comparing_clocks = MPI_Wtime();
            clock = measure_clock_offset();
            comparing_clocks = MPI_Wtime() - comparing_clocks;
            run_windows(operation, &batch, &clock, window);
        } else {
            run_batch(operation, &batch, with_barrier);
        }
        done += batch.count;
        if (all_agree(clock_went_back(&batch))) {
            complain(about, "a rank's clock went back while it timed");
            goto out;
        }
        if (add_batch(operation, &batch, with_window, taken, &own, &own_count, work)) {
            complain(about, "no memory for the times of %zu iterations", done);
            goto out;
        }
        if (rank == 0) {
            if ((double)(taken->discarded - late_before) >
                TOLERATED_LATE * (double)batch.count)
                window = fmin(LONGEST_WINDOW_S, 2 * window);
            /* Wider windows may still come in time. */
            more = taken->count == 0 && ++without < MOST_BATCHES_WITHOUT;
            if (done < most && !plan->estimate)
                more |= done < next_look || !narrow_enough(taken, plan->relative_width, work);
            if (done >= next_look)
                next_look = done + done / GROWTH_BETWEEN_LOOKS;
        }
        MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
        MPI_Bcast(&window, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    }
    if (medians_of_ranks(own, own_count, taken, work)) {
        complain(about, "no memory for the ranks' medians");
        goto out;
    }
    MPI_Reduce(&clock.error, &taken->clock_error, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (all_agree(rank == 0 && taken->count == 0)) {
        complain(about, "all %zu iterations began late on some rank: the clocks' offsets or the "
                        "load of the machine are too large for a window", done);
        goto out;
    }
    /* A batch with windows has two more: the first begins one later, and the last is waited for. */
    if (plan->estimate)
        taken->each = with_window ? window + (comparing_clocks + 2 * window) / (double)plan->iterations
                                  : seconds_of_each(&batch);
    status = 0;
out:
    free_batch(&batch);
    free(work);
    free(own);
    if (status)
        free_samples(taken);
    return status;
}

void free_samples(samples *taken)
{
    free(taken->times);
    free(taken->median_by_rank);
    *taken = (samples){0};
}
