#include "sampling.h"

#include <math.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "dissemination.h"
#include "summary.h"
#include "windows.h"

/* The standard normal distribution's 97.5% quantile. */
#define NORMAL_QUANTILE 1.959963984540054
/* Below this the interval's ranks say nothing (Hoefler and Belli 2015). */
#define FEWEST_FOR_INTERVAL 6
/* The interval is looked at again when the iterations have grown by this part: each look sorts them
 * all, which after every batch would take longer than many short iterations themselves. */
#define GROWTH_BETWEEN_LOOKS 8

const char *const synchronisation_names[] = {"barrier", "dissemination", "window", "none", NULL};

/* One batch as this rank saw it: by its clock, corrected to rank 0's clock with a window. */
typedef struct {
    double *began, *ended, *took;
    double *first, *last; /* Of all ranks, on rank 0; without windows the slowest rank's time. */
    int *late, *late_anywhere;
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
    batch->took = calloc(count, sizeof *batch->took);
    batch->first = calloc(count, sizeof *batch->first);
    batch->last = calloc(count, sizeof *batch->last);
    batch->late = calloc(count, sizeof *batch->late);
    batch->late_anywhere = calloc(count, sizeof *batch->late_anywhere);
    batch->count = count;
    return all_agree(!batch->began || !batch->ended || !batch->took || !batch->first ||
                     !batch->last || !batch->late || !batch->late_anywhere) ? -1 : 0;
}

static void free_batch(batch *batch)
{
    free(batch->began);
    free(batch->ended);
    free(batch->took);
    free(batch->first);
    free(batch->last);
    free(batch->late);
    free(batch->late_anywhere);
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

/* What lets the ranks begin an iteration together; NULL: nothing does. */
typedef void (*barrier)(MPI_Comm comm);

static void library_barrier(MPI_Comm comm)
{
    MPI_Barrier(comm);
}

static barrier find_barrier(const char *synchronisation)
{
    return strcmp(synchronisation, "barrier") == 0         ? library_barrier
           : strcmp(synchronisation, "dissemination") == 0 ? dissemination_barrier
                                                           : NULL;
}

static void run_batch(const operation *operation, batch *batch, barrier enter, MPI_Comm comm)
{
    for (size_t i = 0; i < batch->count; i++) {
        if (operation->before)
            operation->before(operation->context);
        if (enter)
            enter(comm);
        batch->began[i] = seconds_now();
        operation->run(operation->context);
        batch->ended[i] = seconds_now();
        if (enter || i + 1 == batch->count)
            settle_runs(operation);
    }
}

static int clock_went_back(const batch *batch)
{
    for (size_t i = 0; i < batch->count; i++)
        if (batch->ended[i] < batch->began[i] || (i && batch->began[i] < batch->ended[i - 1]))
            return 1;
    return 0;
}

/* Add this batch's iterations to the samples of rank 0 and to the rank's own times, but for those
 * that some rank began late: what is no sample is in no rank's median either. */
static int add_batch(const operation *operation, const batch *batch, int with_window,
                     samples *taken)
{
    const int count = (int)batch->count;
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    double *grown = realloc(taken->own_times, (taken->count + batch->count) * sizeof *grown);
    int failed = !grown;
    if (grown)
        taken->own_times = grown;
    if (rank == 0) {
        grown = realloc(taken->times, (taken->count + batch->count) * sizeof *grown);
        failed |= !grown;
        if (grown)
            taken->times = grown;
    }
    if (all_agree(failed))
        return -1;
    for (size_t i = 0; i < batch->count; i++)
        batch->took[i] = batch->ended[i] - batch->began[i];
    if (with_window) {
        MPI_Reduce(batch->began, batch->first, count, MPI_DOUBLE, MPI_MIN, 0, MPI_COMM_WORLD);
        MPI_Reduce(batch->ended, batch->last, count, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
        MPI_Allreduce(batch->late, batch->late_anywhere, count, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    } else {
        MPI_Reduce(batch->took, batch->last, count, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    }
    for (size_t i = 0; i < batch->count; i++) {
        if (batch->late_anywhere[i]) {
            taken->discarded++;
            continue;
        }
        taken->own_times[taken->count] = batch->took[i];
        if (rank == 0)
            taken->times[taken->count] = operation->timed_by_rank_0 ? batch->took[i]
                                         : with_window ? batch->last[i] - batch->first[i]
                                                       : batch->last[i];
        taken->count++;
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

/* Of --estimate: seconds from one iteration to the next, the mean of a batch's: a sweep takes the sum
 * of all, pauses included. */
static double seconds_of_each(const batch *batch)
{
    const size_t last = batch->count - 1;
    if (last == 0)
        return batch->ended[0] - batch->began[0];
    return (batch->began[last] - batch->began[0]) / (double)last;
}

static int medians_of_ranks(samples *taken)
{
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    double *scratch = calloc(taken->count, sizeof *scratch);
    if (rank == 0)
        taken->median_by_rank = calloc((size_t)ranks, sizeof *taken->median_by_rank);
    if (all_agree(!scratch || (rank == 0 && !taken->median_by_rank))) {
        free(scratch);
        return -1;
    }
    double median = summarise(taken->own_times, taken->count, scratch).median;
    free(scratch);
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
    int rank, status = -1, more = 1, has_windows = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    *taken = (samples){0};
    const int with_window = strcmp(plan->synchronisation, "window") == 0;
    const barrier enter = find_barrier(plan->synchronisation);
    /* Our own messages must not meet a program's. The library's barrier stays that of the world. */
    MPI_Comm own = MPI_COMM_WORLD;
    if (enter == dissemination_barrier)
        MPI_Comm_dup(MPI_COMM_WORLD, &own);
    const size_t most = (size_t)(plan->relative_width > 0.0 ? plan->most_iterations
                                                             : plan->iterations);
    const size_t of_batch = plan->estimate ? (size_t)few_iterations(plan->iterations)
                                           : smaller((size_t)plan->iterations, most);
    size_t done = 0, next_look = 0;
    double *work = calloc(most, sizeof *work);
    batch batch;
    windows windows = {0};
    if (reserve_batch(&batch, of_batch) || all_agree(!work)) {
        complain(about, "no memory for the times of %zu iterations", most);
        goto out;
    }
    const long long warmup = plan->estimate ? few_warmups(plan->warmup) : plan->warmup;
    if (with_window) {
        if (begin_windows(&windows, operation, warmup, most)) {
            complain(about, "no memory for the times of %lld warm-up iterations", warmup);
            goto out;
        }
        has_windows = 1;
    } else {
        for (long long i = 0; i < warmup; i++)
            run_once(operation);
        settle_runs(operation);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (own != MPI_COMM_WORLD)
        enter(own); /* What the first messages of a communicator set up is not timed. */
    while (more) {
        /* The last batch may be shorter. */
        batch.count = smaller(of_batch, most - done);
        if (with_window) {
            batch.count = windows_left(&windows, batch.count);
            if (batch.count == 0)
                break;
            run_windows(&windows, operation, batch.count, batch.began, batch.ended, batch.late);
        } else {
            run_batch(operation, &batch, enter, own);
        }
        const size_t late_before = taken->discarded;
        if (all_agree(clock_went_back(&batch))) {
            complain(about, "a rank's clock went backwards while it timed");
            goto out;
        }
        if (add_batch(operation, &batch, with_window, taken)) {
            complain(about, "no memory for the times of %zu iterations", done + batch.count);
            goto out;
        }
        const size_t late = taken->discarded - late_before;
        const int widened = with_window && widen_windows(&windows, late, batch.count);
        /* As many as were late are timed again, in wider windows. */
        done += widened ? batch.count - late : batch.count;
        if (!widened && rank == 0) {
            more = done < most && taken->count > 0 && !plan->estimate &&
                   (done < next_look || !narrow_enough(taken, plan->relative_width, work));
            if (done >= next_look)
                next_look = done + done / GROWTH_BETWEEN_LOOKS;
        }
        MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    if (taken->count == 0) {
        complain(about, "all %zu iterations began late on some rank: the clocks' offsets or the "
                        "load of the machine are too large for a window", taken->discarded);
        goto out;
    }
    if (medians_of_ranks(taken)) {
        complain(about, "no memory for the ranks' medians");
        goto out;
    }
    MPI_Reduce(&windows.error, &taken->clock_error, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    /* A batch with windows has two more: the first begins one later, and the last is waited for. */
    if (plan->estimate)
        taken->each = with_window ? windows.length + (windows.comparing + 2 * windows.length) /
                                                         (double)plan->iterations
                                  : seconds_of_each(&batch);
    status = 0;
out:
    if (own != MPI_COMM_WORLD)
        MPI_Comm_free(&own);
    if (has_windows)
        end_windows(&windows);
    free_batch(&batch);
    free(work);
    if (status)
        free_samples(taken);
    return status;
}

void free_samples(samples *taken)
{
    free(taken->times);
    free(taken->own_times);
    free(taken->median_by_rank);
    *taken = (samples){0};
}
