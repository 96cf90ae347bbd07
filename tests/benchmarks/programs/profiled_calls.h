/* Calls of MPI with known counts, for the tests of the profile. */
#ifndef WYEAST_PROFILED_CALLS_H
#define WYEAST_PROFILED_CALLS_H

#include "../../../benchmarks/profile/interface.h"

/* This rank and the other of two, and both in a communicator in which they have changed places. */
extern int rank, other;
extern MPI_Comm turned;

/* Print the truth of this rank, which adds to what was printed before: calls (below 0: any), messages
 * and bytes sent or given, messages and bytes received. */
void expect(const char *function, long calls, long sent, long bytes, long received,
            long received_bytes);
#define EXPECT(name, ...) expect("MPI_" #name, __VA_ARGS__)

/* Every function for messages between two ranks, and every one that waits. */
void call_messages(void);

#endif
