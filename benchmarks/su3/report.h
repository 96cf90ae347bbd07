/* The records of su3; see benchmarks/FORMAT.md. */
#ifndef WYEAST_SU3_REPORT_H
#define WYEAST_SU3_REPORT_H

#include "simulation.h"

/* What was measured, on rank 0; of each trajectory, and of each rank. */
typedef struct {
    size_t trajectories, ranks;
    long long warmups;
    unsigned long long first; /* Number of the first trajectory that was timed. */
    int hot, accept;
    trajectory_result *results;
    double *times;
    double *cpu, *exchange; /* By rank. */
    double wall, deviation;
    unsigned long long moved, verified;
} measurement;

/* Write the result, and with `raw` the trajectories' times. Returns 0, or -1 where memory ran
 * out. */
int report_simulation(const simulation *s, const measurement *m, int raw);

void report_proof(const simulation *s, const char *name, double deviation);

#endif
