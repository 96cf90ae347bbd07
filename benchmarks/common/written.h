/* Whether what a program printed has got out, and if not, why. */
#ifndef WYEAST_WRITTEN_H
#define WYEAST_WRITTEN_H

#include <stdio.h>

/* Have standard output go out when it is asked to, or its buffer is full: an MPI may have had it go
 * out with each word, which loses the reason where that fails. Before anything is printed. */
void gather_output(void);

/* Get all of a stream out. Returns NULL, or why that failed in the system's words. */
const char *why_unwritten(FILE *out);

/* The same for standard output; says why on standard error. Returns 0, or -1. */
int see_output_written(const char *program);

#endif
