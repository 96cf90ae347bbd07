#include "cache_size.h"

#include <stdio.h>

#define MOST_LEVELS 8

/* How many processors a list such as 0-3,8 names. */
static long processors_in(FILE *list)
{
    long first, last, count = 0;
    while (fscanf(list, "%ld", &first) == 1) {
        last = first;
        int next = fgetc(list);
        if (next == '-' && fscanf(list, "%ld", &last) == 1)
            next = fgetc(list);
        count += last - first + 1;
        if (next != ',')
            break;
    }
    return count;
}

static FILE *open_of_cache(long processor, int index, const char *name)
{
    char path[128];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%ld/cache/index%d/%s", processor,
             index, name);
    return fopen(path, "r");
}

/* A processor's part of its last-level cache in bytes; the kernel lists the caches by level. */
static double share_of_cache(long processor)
{
    double share = 0.0;
    for (int index = 0; index < MOST_LEVELS; index++) {
        FILE *size = open_of_cache(processor, index, "size");
        FILE *sharers = open_of_cache(processor, index, "shared_cpu_list");
        double amount = 0.0;
        char unit = 0;
        long count = sharers ? processors_in(sharers) : 0;
        if (size && fscanf(size, "%lf%c", &amount, &unit) == 2 && count > 0)
            share = amount * (unit == 'M' ? 0x1p20 : unit == 'K' ? 0x1p10 : 1.0) / (double)count;
        if (size)
            fclose(size);
        if (sharers)
            fclose(sharers);
        if (!size)
            break;
    }
    return share;
}

double last_level_caches(void)
{
    double all = 0.0;
    for (long processor = 0;; processor++) {
        const double share = share_of_cache(processor);
        if (share <= 0.0)
            return all;
        all += share;
    }
}
