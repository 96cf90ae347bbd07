#include "clock_offsets.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "clock.h"

#define TAG 77
#define ROUND_TRIPS 50
/* Seconds in a second by which a clock drifts at most: quartz is right to 1e-4, and the kernel slews by
 * 5e-4 (adjtimex). */
#define LARGEST_RATE 1e-3

void begin_comparison(clock_comparison *clocks)
{
    char identity[CLOCK_IDENTITY_BYTES] = "";
    find_clock_identity(identity);
    if (!identity[0]) {
        /* A clock that cannot be told from others is compared by itself. */
        int rank;
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        snprintf(identity, sizeof identity, "rank %d", rank);
    }
    find_alike(&clocks->by_clock, identity);
    const long long own = (long long)nanoseconds_at_beginning();
    long long of_leader = own;
    MPI_Bcast(&of_leader, 1, MPI_LONG_LONG, 0, clocks->by_clock.sharing);
    clocks->from_leader = (double)(own - of_leader) * 1e-9;
    clocks->step = smallest_step(seconds_now);
}

void end_comparison(clock_comparison *clocks)
{
    free_alike(&clocks->by_clock);
}

/* Let another leader ask what time it is here, or ask one. */
static void answer(MPI_Comm leaders, int client)
{
    double now = 0.0;
    for (int i = 0; i < ROUND_TRIPS; i++) {
        MPI_Recv(&now, 1, MPI_DOUBLE, client, TAG, leaders, MPI_STATUS_IGNORE);
        now = seconds_now();
        MPI_Send(&now, 1, MPI_DOUBLE, client, TAG, leaders);
    }
}

static clock_offset ask(MPI_Comm leaders, int reference)
{
    clock_offset found = {0.0, 0.0, 0.0};
    for (int i = 0; i < ROUND_TRIPS; i++) {
        double there = 0.0;
        const double began = seconds_now();
        MPI_Send(&there, 1, MPI_DOUBLE, reference, TAG, leaders);
        MPI_Recv(&there, 1, MPI_DOUBLE, reference, TAG, leaders, MPI_STATUS_IGNORE);
        const double half = (seconds_now() - began) / 2;
        /* Of the shortest round trip it is best known when it was at the reference. */
        if (i == 0 || half < found.error)
            found = (clock_offset){began + half, there - (began + half), half};
    }
    return found;
}

/* In the round of a distance the leaders below it are the references of those as far above them. */
static clock_offset compare_leaders(MPI_Comm leaders)
{
    int rank, ranks;
    MPI_Comm_rank(leaders, &rank);
    MPI_Comm_size(leaders, &ranks);
    clock_offset found = {seconds_now(), 0.0, 0.0};
    for (long long distance = 1; distance < ranks; distance *= 2) {
        if (rank < distance && rank + distance < ranks)
            answer(leaders, (int)(rank + distance));
        else if (rank >= distance && rank < 2 * distance)
            found = ask(leaders, (int)(rank - distance));
    }
    return found;
}

clock_offset compare_clocks(const clock_comparison *clocks)
{
    double of_leader[3] = {0.0, 0.0, 0.0};
    if (clocks->by_clock.leaders != MPI_COMM_NULL) {
        const clock_offset found = compare_leaders(clocks->by_clock.leaders);
        memcpy(of_leader, (const double[]){found.at, found.offset, found.error}, sizeof of_leader);
    }
    MPI_Bcast(of_leader, 3, MPI_DOUBLE, 0, clocks->by_clock.sharing);
    return (clock_offset){of_leader[0], of_leader[1], of_leader[2]};
}

/* Whether two comparisons differ by more than a clock can have drifted: then by their own errors. */
static int beyond_drift(const clock_offset *earlier, const clock_offset *later)
{
    return !(fabs(later->offset - earlier->offset) <= LARGEST_RATE * (later->at - earlier->at));
}

clock_line line_through(const clock_offset *earlier, const clock_offset *later)
{
    const double seconds = later->at - earlier->at;
    const clock_offset *surer = earlier->error < later->error ? earlier : later;
    clock_line line = {surer->at, surer->offset, 0.0, HUGE_VAL};
    if (!(seconds > 0.0))
        return line;
    line.rate = (later->offset - earlier->offset) / seconds;
    line.rate_error = (earlier->error + later->error) / seconds;
    if (beyond_drift(earlier, later))
        line.rate = copysign(LARGEST_RATE, line.rate);
    return line;
}

clock_line line_onwards(const clock_offset *earlier, const clock_offset *later)
{
    const double rate = line_through(earlier, later).rate;
    const double error = line_through(earlier, later).rate_error;
    return (clock_line){later->at, later->offset, fabs(rate) > error ? rate : 0.0, error};
}

double time_by_line(const clock_line *line, double seconds)
{
    return seconds + line->offset + line->rate * (seconds - line->at);
}

clock_line line_over(const clock_line *to_reference, const clock_line *onwards)
{
    const double at = to_reference->at, there = at + to_reference->offset;
    return (clock_line){at, time_by_line(onwards, there) - at,
                        to_reference->rate + onwards->rate + to_reference->rate * onwards->rate,
                        to_reference->rate_error + onwards->rate_error};
}

/* What a leader is told of its reference's whole way, and tells those whose reference it is. */
enum { AT, OFFSET, RATE, RATE_ERROR, ERROR, TOLD };

static void put_together(MPI_Comm leaders, clock_line *line, double *error)
{
    int rank, ranks;
    MPI_Comm_rank(leaders, &rank);
    MPI_Comm_size(leaders, &ranks);
    for (long long distance = 1; distance < ranks; distance *= 2) {
        double told[TOLD] = {line->at, line->offset, line->rate, line->rate_error, *error};
        if (rank < distance && rank + distance < ranks) {
            MPI_Send(told, TOLD, MPI_DOUBLE, (int)(rank + distance), TAG, leaders);
        } else if (rank >= distance && rank < 2 * distance) {
            MPI_Recv(told, TOLD, MPI_DOUBLE, (int)(rank - distance), TAG, leaders,
                     MPI_STATUS_IGNORE);
            const clock_line onwards = {told[AT], told[OFFSET], told[RATE], told[RATE_ERROR]};
            *line = line_over(line, &onwards);
            /* By a clock that may itself be as fast as clocks can be. */
            *error = *error * (1 + LARGEST_RATE) + told[ERROR];
        }
    }
}

clock_line line_to_rank_0(const clock_comparison *clocks, const clock_line *to_reference,
                          double *error)
{
    clock_line line = *to_reference;
    int sharing;
    MPI_Comm_size(clocks->by_clock.sharing, &sharing);
    if (clocks->by_clock.leaders != MPI_COMM_NULL)
        put_together(clocks->by_clock.leaders, &line, error);
    double of_leader[TOLD] = {line.at, line.offset, line.rate, line.rate_error, *error};
    MPI_Bcast(of_leader, TOLD, MPI_DOUBLE, 0, clocks->by_clock.sharing);
    /* Two readings of one clock are known to its step each. */
    *error = of_leader[ERROR] + (sharing > 1 ? clocks->step : 0.0);
    return (clock_line){of_leader[AT] - clocks->from_leader,
                        of_leader[OFFSET] + clocks->from_leader, of_leader[RATE],
                        of_leader[RATE_ERROR]};
}

double error_between(const clock_offset *earlier, const clock_offset *before,
                     const clock_offset *after)
{
    const double seconds = after->at - before->at;
    /* The line is through one of them alone, and the drift is anything that it can be. */
    const double between = beyond_drift(before, after)
        ? fmin(before->error, after->error) + 2 * LARGEST_RATE * fmax(seconds, 0.0)
        : fmax(before->error, after->error);
    const clock_line until = line_through(earlier, before);
    if (isinf(until.rate_error))
        return between;
    const double missed = fabs(before->offset + until.rate * seconds - after->offset);
    const double explained = before->error + after->error + until.rate_error * seconds;
    return between + (missed > explained ? missed : 0.0);
}
