/* One communication: proved right, timed, and reported as benchmarks/FORMAT.md says. */
#ifndef WYEAST_COMMUNICATION_H
#define WYEAST_COMMUNICATION_H

#include <stddef.h>
#include <stdio.h>

#include "sampling.h"

typedef struct {
    const char *operation; /* What: alltoall, halo, … */
    const char *method;    /* By which calls, where there is a choice; else "". */
    const char *group;     /* Which ranks, and how they are arranged: world, halves, 2x2, … */
    int ranks;             /* That take part in one of them. */
    size_t message_bytes;  /* FORMAT.md says of what, for each operation. */
    /* What one iteration moves between different ranks, summed over all; this rank's share. */
    unsigned long long moved_bytes;
} communication;

typedef struct {
    operation timed;
    /* Untimed, around one run before the timing: put the pattern of verification n into the buffers
     * that are sent, and something else into the others; compare what arrived. `verify` returns the
     * bytes that this rank compared, which were other ranks', or -1 with a sentence. */
    void (*prepare)(void *context, unsigned long long n);
    long long (*verify)(void *context, unsigned long long n, complaint *about);
} verified_operation;

/* Verify, time and report a communication; a fault ends the program on all ranks. Collective over
 * MPI_COMM_WORLD. Returns, on all ranks, the median in seconds of what the slowest rank took itself. */
double measure_communication(const program_description *program, const sampling *plan,
                           const verified_operation *operation, const communication *about);

/* Write the result, and its iterations where the plan wants them; `ranks` is the length of
 * median_by_rank. Needs no MPI. Returns 0, or -1 where memory ran out. */
int print_communication(FILE *out, const sampling *plan, const communication *about,
                        const samples *taken, size_t ranks, unsigned long long moved,
                        unsigned long long verified);

/* Write the times that one rank took itself for the iterations of the result before. Needs no MPI. */
void print_iterations_of_rank(FILE *out, const communication *about, int rank, const double *times,
                              size_t count);

/* How many results there are so far, for end_program. */
size_t communications_reported(void);

/* For progress: how many points the sweep has; call it before the first. */
void announce_points(const program_description *program, size_t points);

/* What --estimate prints at the end, if it was given. */
void report_estimate(const sampling *plan);

/* End the program with the sentence of the lowest rank that failed, if any did. Collective over
 * MPI_COMM_WORLD. */
void refuse_together(const program_description *program, int failed, const complaint *about);

/* Say on stderr of rank 0 why something is not measured: "what: reason". */
void leave_out(const program_description *program, const char *sentence);

#endif
