/* The runs of emulated applications, each alone and all together, and their results. */
#ifndef WYEAST_MEASURE_H
#define WYEAST_MEASURE_H

#include <stddef.h>

#include "applications.h"
#include "computing.h"

typedef struct {
    computing how;
    long long steps, iterations, warmup;
} emulation_plan;

/* The times in seconds of every iteration, by the slowest rank. */
typedef enum {
    TIME_ALONE,     /* Of the application while the others' ranks sleep. */
    TIME_TOGETHER,  /* Of the application together with the others. */
    TIME_MESSAGES,  /* Alone, without computing. */
    TIME_COMPUTING, /* What TIME_ALONE were if messages took no time. */
    TIMES,
} time_kind;

/* What each rank reports of all its timed runs, in seconds. */
typedef enum {
    MEDIAN_ALONE,
    MEDIAN_TOGETHER,
    SUM_ALONE,
    SUM_TOGETHER,
    COMMUNICATING_ALONE, /* The part of SUM_ALONE that is not computing. */
    COMMUNICATING_TOGETHER,
    MEAN_DRAWN, /* The computing that was drawn for one iteration. */
    VALUES,
} value_kind;

/* The same in bytes. */
typedef enum { BYTES_SENT, BYTES_RECEIVED, BYTES_VERIFIED, BYTES } byte_kind;

/* On rank 0; elsewhere the pointers are NULL. */
typedef struct {
    double *times;             /* By application, time_kind and iteration. */
    double *values;            /* By world rank and value_kind. */
    unsigned long long *bytes; /* By world rank and byte_kind. */
    double once, each;         /* What verifying took, and an iteration, in seconds. */
} emulation;

/* How many runs of an application one iteration has: alone, without computing, together. */
#define RUNS_OF_AN_ITERATION 3

/* Verify and measure. Collective over MPI_COMM_WORLD; a fault ends the program on all ranks. */
void measure_applications(const program_description *program, const application_list *list,
                          const emulation_plan *plan, emulation *measured);

void free_emulation(emulation *measured);

#endif
