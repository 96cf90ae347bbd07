#define _GNU_SOURCE /* sched_getcpu */
#include "noise.h"

#include <math.h>
#include <mpi.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../common/clock_frequency.h"
#include "../common/record_pieces.h"
#include "../common/summary.h"

/* Readings of the clock are the work, as in Netgauge's selfish detours (Hoefler, Schneider and
 * Lumsdaine, SC'10): between two that follow one another nothing happens but a detour, where they
 * are this much farther apart than the nearest were. */
#define DETOUR 9
#define CALIBRATING_NS 20000000
/* A piece of work is as many readings as take so long when nothing comes between. */
#define PIECE_NS 1000000.0
/* So many pieces in a row are a block, of which the median counts: as long as a short launch's
 * timed part. */
#define PIECES_OF_BLOCK 50

typedef struct {
    char host[LARGEST_HOST_NAME];
    double looked, detours, detour, longest; /* In seconds, but for how many detours there were. */
    double deviation;                        /* Of the blocks' medians, relative; below 0: of one. */
    double stolen, slowest, fastest;         /* In seconds, below 0 where unknown; in Hz. */
    time_summary piece;
} noise_seen;

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* What a hypervisor has given to others while a processor had work, in seconds; below 0: unknown. */
static double stolen_s(int processor)
{
    char line[256], format[64];
    unsigned long long ticks;
    int found = 0;
    FILE *file = fopen("/proc/stat", "r");
    if (!file)
        return -1.0;
    snprintf(format, sizeof format, "cpu%d %%*u %%*u %%*u %%*u %%*u %%*u %%*u %%llu", processor);
    while (!found && fgets(line, sizeof line, file))
        found = sscanf(line, format, &ticks) == 1;
    fclose(file);
    return found ? (double)ticks / (double)sysconf(_SC_CLK_TCK) : -1.0;
}

static int64_t nearest_readings(void)
{
    int64_t least = INT64_MAX, before = now_ns();
    for (const int64_t end = before + CALIBRATING_NS; before < end;) {
        const int64_t now = now_ns();
        if (now > before && now - before < least)
            least = now - before;
        before = now;
    }
    return least;
}

/* The time of a piece of work in seconds; adds its detours to what was seen. */
static double work(long readings, int64_t nearest, noise_seen *seen)
{
    const int64_t began = now_ns();
    int64_t before = began;
    for (long i = 0; i < readings; i++) {
        const int64_t now = now_ns(), apart = now - before;
        before = now;
        if (apart <= DETOUR * nearest)
            continue;
        const double lost = 1e-9 * (double)(apart - nearest);
        seen->detours += 1;
        seen->detour += lost;
        if (lost > seen->longest)
            seen->longest = lost;
    }
    return 1e-9 * (double)(before - began);
}

static double deviation_of_blocks(const double *pieces, size_t count, double *scratch)
{
    const size_t blocks = count / PIECES_OF_BLOCK;
    double sum = 0.0, squares = 0.0;
    for (size_t block = 0; block < blocks; block++) {
        const double *own = pieces + block * PIECES_OF_BLOCK;
        const double level = log(summarise(own, PIECES_OF_BLOCK, scratch).median);
        sum += level;
        squares += level * level;
    }
    if (blocks < 2)
        return -1.0;
    const double n = (double)blocks, left = (squares - sum * sum / n) / (n - 1);
    return left > 0.0 ? sqrt(left) : 0.0;
}

/* Returns 0, or -1 where memory ran out. */
static int look(double seconds, noise_seen *seen)
{
    const size_t most = (size_t)(seconds / (1e-9 * PIECE_NS)) + 2 * PIECES_OF_BLOCK;
    double *pieces = calloc(most, sizeof *pieces), *scratch = calloc(most, sizeof *scratch);
    if (!pieces || !scratch) {
        free(pieces);
        free(scratch);
        return -1;
    }
    const int processor = sched_getcpu();
    const double stolen = stolen_s(processor), first = clock_frequency();
    const int64_t nearest = nearest_readings();
    const long readings = (long)(PIECE_NS / (double)nearest) + 1;
    const int64_t began = now_ns(), end = began + (int64_t)(1e9 * seconds);
    size_t count = 0;
    while (count < 2 * PIECES_OF_BLOCK || (count < most && now_ns() < end))
        pieces[count++] = work(readings, nearest, seen);
    seen->looked = 1e-9 * (double)(now_ns() - began);
    const double last = clock_frequency(), stolen_then = stolen_s(processor);
    /* What was stolen of one that the rank was on for a while only is not what it has lost. */
    const int moved = processor < 0 || sched_getcpu() != processor;
    seen->slowest = fmin(first, last);
    seen->fastest = fmax(first, last);
    seen->stolen = moved || stolen < 0 || stolen_then < stolen ? -1.0 : stolen_then - stolen;
    seen->deviation = deviation_of_blocks(pieces, count, scratch);
    seen->piece = summarise(pieces, count, scratch);
    free(pieces);
    free(scratch);
    return 0;
}

static void print_seen(const noise_seen *one)
{
    fputs("{\"record\":\"result\",\"operation\":\"noise\",\"host\":", stdout);
    print_string(stdout, one->host);
    printf(",\"looked_s\":%.9e,\"detours\":%.0f,\"detour_s\":%.9e,\"longest_s\":%.9e,"
           "\"deviation\":%.9e,\"stolen_s\":",
           one->looked, one->detours, one->detour, one->longest, one->deviation);
    if (one->stolen < 0)
        fputs("null", stdout);
    else
        print_seconds(stdout, one->stolen);
    printf(",\"slowest_hz\":%.9e,\"fastest_hz\":%.9e,\"time_s\":", one->slowest, one->fastest);
    print_summary(stdout, &one->piece);
    fputs("}\n", stdout);
}

/* A rank that waited for others in its library would take their processor. */
static void sleep_for(double seconds)
{
    struct timespec left = {(time_t)seconds, (long)(1e9 * (seconds - floor(seconds)))};
    while (nanosleep(&left, &left) != 0)
        continue;
}

long print_noise(double seconds, const ranks_alike *of_host)
{
    int of_node, hosts, number, failed_here = 0, failed;
    noise_seen own = {.deviation = -1.0}, *all = NULL;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Comm_rank(of_host->sharing, &of_node);
    if (of_node == 0) {
        rank_place here;
        find_place(&here);
        memcpy(own.host, here.host, sizeof own.host);
        failed_here = look(seconds, &own);
    } else {
        sleep_for(seconds + 1.5e-9 * CALIBRATING_NS);
    }
    MPI_Allreduce(&failed_here, &failed, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (failed)
        return -1;
    if (of_node != 0)
        return 0;
    MPI_Comm_rank(of_host->leaders, &number);
    MPI_Comm_size(of_host->leaders, &hosts);
    if (number == 0)
        all = calloc((size_t)hosts, sizeof *all);
    int has_room = number != 0 || all != NULL;
    MPI_Bcast(&has_room, 1, MPI_INT, 0, of_host->leaders);
    if (!has_room)
        return -1;
    MPI_Gather(&own, (int)sizeof own, MPI_BYTE, all, (int)sizeof own, MPI_BYTE, 0,
               of_host->leaders);
    for (int host = 0; number == 0 && host < hosts; host++)
        print_seen(&all[host]);
    free(all);
    return number == 0 ? hosts : 0;
}
