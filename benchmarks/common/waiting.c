#include "waiting.h"

#include <stdio.h>

#include "clock.h"

/* On a processor, runnable without one (both in ns), and turns: Documentation/scheduler/sched-stats
 * of the kernel. Of a process this is its main thread. */
#define COUNTS "/proc/self/schedstat"
#define COUNTS_OF_THREAD "/proc/thread-self/schedstat"
/* How long another one keeps a processor that it shares: 3 ms by default, up to the next of 250 ticks
 * a second. */
#define SLICE_S 4e-3

/* Since `counted_s`, as the clock was. */
static processor_wait begun = {.counted_s = -1.0};
/* Of the other threads that have ended. */
static processor_wait longest;
static int is_unknown;

/* What was counted until now, with the time. */
static processor_wait read_counts(const char *path)
{
    unsigned long long ran_ns, waited_ns, times;
    int found = 0;
    FILE *file = fopen(path, "r");
    if (file) {
        found = fscanf(file, "%llu %llu %llu", &ran_ns, &waited_ns, &times);
        fclose(file);
    }
    if (found != 3)
        return (processor_wait){.counted_s = -1.0};
    return (processor_wait){seconds_now(), 1e-9 * (double)waited_ns, (double)times};
}

static processor_wait counted_since(processor_wait from, const char *path)
{
    processor_wait now = read_counts(path);
    if (from.counted_s < 0 || now.counted_s < 0)
        return (processor_wait){.counted_s = -1.0};
    return (processor_wait){now.counted_s - from.counted_s, now.waited_s - from.waited_s,
                            now.turns - from.turns};
}

double waited_share(const processor_wait *one)
{
    if (one->waited_s >= one->counted_s)
        return one->counted_s > 0 ? 1.0 : 0.0;
    return one->waited_s / one->counted_s;
}

double wait_of_message(const processor_wait *one)
{
    const double each_s = one->turns > 0 ? one->waited_s / one->turns : 0.0;
    return waited_share(one) * (each_s > SLICE_S ? each_s : SLICE_S);
}

void begin_waiting(void)
{
    begun = read_counts(COUNTS);
}

processor_wait begin_waiting_of_thread(void)
{
    return read_counts(COUNTS_OF_THREAD);
}

processor_wait waiting_of_thread(processor_wait from)
{
    return counted_since(from, COUNTS_OF_THREAD);
}

void add_waiting_of_thread(processor_wait counted)
{
    is_unknown |= counted.counted_s < 0;
    if (wait_of_message(&counted) > wait_of_message(&longest))
        longest = counted;
}

processor_wait own_waiting(void)
{
    const processor_wait own = counted_since(begun, COUNTS);
    if (own.counted_s < 0 || is_unknown)
        return (processor_wait){.counted_s = -1.0};
    return wait_of_message(&longest) > wait_of_message(&own) ? longest : own;
}
