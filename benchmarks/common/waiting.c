#include "waiting.h"

#include <stdio.h>

#include "clock.h"

/* On a processor, runnable without one (both in ns), and turns: Documentation/scheduler/sched-stats
 * of the kernel. Of a process this is its main thread. */
#define COUNTS "/proc/self/schedstat"

static processor_wait begun = {.counted_s = -1.0};
static double began_s;

/* Returns 0, or -1 where the kernel does not say. */
static int read_counts(double *waited_s, double *turns)
{
    unsigned long long ran_ns, waited_ns, times;
    FILE *file = fopen(COUNTS, "r");
    if (!file)
        return -1;
    const int found = fscanf(file, "%llu %llu %llu", &ran_ns, &waited_ns, &times);
    fclose(file);
    if (found != 3)
        return -1;
    *waited_s = 1e-9 * (double)waited_ns;
    *turns = (double)times;
    return 0;
}

void begin_waiting(void)
{
    begun.counted_s = read_counts(&begun.waited_s, &begun.turns) ? -1.0 : 0.0;
    began_s = seconds_now();
}

processor_wait own_waiting(void)
{
    processor_wait now = {.counted_s = -1.0};
    if (begun.counted_s < 0 || read_counts(&now.waited_s, &now.turns))
        return (processor_wait){.counted_s = -1.0};
    now.counted_s = seconds_now() - began_s;
    now.waited_s -= begun.waited_s;
    now.turns -= begun.turns;
    return now;
}
