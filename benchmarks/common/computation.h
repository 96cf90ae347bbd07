/* A computation without MPI and without a clock, as long as wanted: what a rank does while the library
 * is left to itself. */
#ifndef WYEAST_COMPUTATION_H
#define WYEAST_COMPUTATION_H

/* How many operations take this rank so long. Times a short computation. */
long long operations_for(double seconds);

/* Compute. Each operation needs the one before, so that their number determines the time. */
void compute(long long operations);

#endif
