/* A barrier by messages between pairs of ranks, the same with every MPI, whatever the library's own
 * does. */
#ifndef WYEAST_DISSEMINATION_H
#define WYEAST_DISSEMINATION_H

#include <mpi.h>

/* Return when all ranks of a communicator have entered, after ceil(log2(ranks)) rounds of an empty
 * message from and to each rank (Hensgen, Finkel and Manber 1988). No message of a program may be on
 * its way in the same communicator. */
void dissemination_barrier(MPI_Comm comm);

/* The same, but a rank that waits sleeps, up to a millisecond at a time, and leaves its core to those
 * whose turn it is. */
void patient_barrier(MPI_Comm comm);

#endif
