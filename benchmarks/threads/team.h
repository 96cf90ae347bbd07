/* Threads of a rank that do something at the same time, again and again. */
#ifndef WYEAST_TEAM_H
#define WYEAST_TEAM_H

#include <stddef.h>

/* Start all threads but the first, which is the caller. Returns 0, or -1 where there are no more. */
int begin_team(size_t threads);
void end_team(void);

/* Have every thread call `part` with its number, and return when all have. */
void do_together(void (*part)(void *context, size_t thread), void *context);

#endif
