#include "windows.h"

#include <math.h>
#include <mpi.h>
#include <stdlib.h>

#include "clock.h"
#include "summary.h"

/* Of SKaMPI: windows are doubled where more than a quarter of the iterations began late. */
#define TOLERATED_LATE 0.25
#define FIRST_WINDOW_FACTOR 4.0
#define SHORTEST_WINDOW_S 50e-6
/* All windows together may last so many times as long as those that were asked for would at their
 * first length, or so long, whichever is longer. */
#define MOST_TIMES_THE_FIRST 8.0
#define ALWAYS_ALLOWED_S 10.0

/* This rank's median of the warm-up's iterations but the first, which pays for what is touched for the
 * first time. Below 0: no memory. */
static double median_of_warmup(const operation *operation, long long warmup)
{
    const size_t runs = warmup < 2 ? 2 : (size_t)warmup;
    double *times = calloc(2 * runs, sizeof *times);
    for (size_t i = 0; i < runs; i++) {
        const double began = seconds_now();
        if (operation->before)
            operation->before(operation->context);
        operation->run(operation->context);
        if (times)
            times[i] = seconds_now() - began;
    }
    settle_runs(operation);
    const double median = times ? summarise(times + 1, runs - 1, times + runs).median : -1.0;
    free(times);
    return median;
}

int begin_windows(windows *w, const operation *operation, long long warmup, size_t most)
{
    *w = (windows){0};
    begin_comparison(&w->clocks);
    w->first = compare_clocks(&w->clocks);
    double range[2] = {0.0, 0.0};
    const double median = median_of_warmup(operation, warmup);
    double mine[2] = {median, median < 0.0 ? 1.0 : 0.0};
    MPI_Allreduce(mine, range, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (range[1] > 0.0) {
        end_windows(w);
        return -1;
    }
    w->length = fmax(SHORTEST_WINDOW_S, FIRST_WINDOW_FACTOR * range[0]);
    w->left = fmax(ALWAYS_ALLOWED_S, MOST_TIMES_THE_FIRST * (double)most * w->length);
    return 0;
}

void end_windows(windows *w)
{
    end_comparison(&w->clocks);
}

size_t windows_left(const windows *w, size_t wanted)
{
    const double left = floor(w->left / w->length);
    return left < (double)wanted ? (size_t)fmax(0.0, left) : wanted;
}

void run_windows(windows *w, const operation *operation, size_t count, double *began, double *ended,
                 int *late)
{
    double comparing = seconds_now();
    const clock_offset before = compare_clocks(&w->clocks);
    comparing = seconds_now() - comparing;
    double unused = 0.0;
    const clock_line on = line_onwards(&w->first, &before);
    const clock_line ahead = line_to_rank_0(&w->clocks, &on, &unused);
    double start = time_by_line(&ahead, seconds_now()) + w->length;
    MPI_Bcast(&start, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    start += w->length;
    for (size_t i = 0; i < count; i++) {
        const double begin = start + (double)i * w->length;
        if (operation->before)
            operation->before(operation->context);
        late[i] = time_by_line(&ahead, seconds_now()) > begin;
        while (time_by_line(&ahead, seconds_now()) < begin)
            ;
        began[i] = seconds_now();
        operation->run(operation->context);
        ended[i] = seconds_now();
    }
    settle_runs(operation);
    w->left -= (double)count * w->length;
    /* Again at the end: the clocks went on to drift, and now it is known how far. No clock is compared
     * while another rank still needs it, since a line is not known beyond its comparisons. */
    MPI_Barrier(MPI_COMM_WORLD);
    const double again = seconds_now();
    const clock_offset after = compare_clocks(&w->clocks);
    w->comparing = comparing + seconds_now() - again;
    const clock_line through = line_through(&before, &after);
    double error = error_between(&w->first, &before, &after);
    const clock_line between = line_to_rank_0(&w->clocks, &through, &error);
    for (size_t i = 0; i < count; i++) {
        began[i] = time_by_line(&between, began[i]);
        ended[i] = time_by_line(&between, ended[i]);
    }
    w->error = fmax(w->error, error);
}

int widen_windows(windows *w, size_t late, size_t count)
{
    const int widened = (double)late > TOLERATED_LATE * (double)count;
    if (widened)
        w->length *= 2;
    return widened;
}
