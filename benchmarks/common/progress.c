#include "progress.h"

#include <stdio.h>

/* Between two lines, in seconds. */
#define PROGRESS_S 10.0

void begin_progress(progress *sweep, const char *program, const char *parts, size_t all,
                    double (*clock)(void))
{
    const double now = clock();
    *sweep = (progress){.program = program, .parts = parts, .all = all, .clock = clock,
                        .began = now, .last_said = now};
}

void count_part(progress *sweep)
{
    const double now = sweep->clock();
    sweep->done++;
    if (now - sweep->last_said < PROGRESS_S || sweep->done >= sweep->all)
        return;
    sweep->last_said = now;
    fprintf(stderr, "%s: %zu of %zu %s after %.0f s\n", sweep->program, sweep->done, sweep->all,
            sweep->parts, now - sweep->began);
}
