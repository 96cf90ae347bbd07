#include "cache_size.h"

#include <stdio.h>

#define MOST_LEVELS 8

/* The next processors in a row of a list such as 0-3,8. Returns 0 behind its end. */
static int next_range(FILE *list, long *first, long *last)
{
    if (fscanf(list, "%ld", first) != 1)
        return 0;
    *last = *first;
    if (fgetc(list) == '-') {
        if (fscanf(list, "%ld", last) != 1)
            return 0;
        fgetc(list);
    }
    return 1;
}

static long processors_in(FILE *list)
{
    long first, last, count = 0;
    while (next_range(list, &first, &last))
        count += last - first + 1;
    return count;
}

static FILE *open_of_cache(const char *processors, long processor, int index, const char *name)
{
    char path[512];
    const int length = snprintf(path, sizeof path, "%s/cpu%ld/cache/index%d/%s", processors,
                                processor, index, name);
    return length > 0 && (size_t)length < sizeof path ? fopen(path, "r") : NULL;
}

/* A processor's part of its last-level cache in bytes; the kernel lists the caches by level. */
static double share_of_cache(const char *processors, long processor)
{
    double share = 0.0;
    for (int index = 0; index < MOST_LEVELS; index++) {
        FILE *size = open_of_cache(processors, processor, index, "size");
        FILE *sharers = open_of_cache(processors, processor, index, "shared_cpu_list");
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

double caches_listed_in(const char *processors)
{
    char path[512];
    const int length = snprintf(path, sizeof path, "%s/online", processors);
    FILE *online = length > 0 && (size_t)length < sizeof path ? fopen(path, "r") : NULL;
    if (!online)
        return 0.0;
    double all = 0.0, largest = 0.0;
    long first, last, silent = 0;
    while (next_range(online, &first, &last))
        for (long processor = first; processor <= last; processor++) {
            const double share = share_of_cache(processors, processor);
            silent += share <= 0.0;
            all += share;
            largest = share > largest ? share : largest;
        }
    fclose(online);
    return all + (double)silent * largest;
}

double last_level_caches(void)
{
    return caches_listed_in("/sys/devices/system/cpu");
}
