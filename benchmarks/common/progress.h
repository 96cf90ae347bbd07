/* How far a long sweep is: a line on stderr now and then. Needs no MPI. */
#ifndef WYEAST_PROGRESS_H
#define WYEAST_PROGRESS_H

#include <stddef.h>

typedef struct {
    const char *program;
    const char *parts; /* What a sweep is made of: points or iterations. */
    size_t all, done;
    double (*clock)(void); /* In seconds. */
    double began, last_said;
} progress;

/* Begin to count; call it before the first part, on the rank that speaks. */
void begin_progress(progress *sweep, const char *program, const char *parts, size_t all,
                    double (*clock)(void));

/* One part more is done; say so if the last line is a while ago and there are parts left. */
void count_part(progress *sweep);

#endif
