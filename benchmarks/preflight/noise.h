/* How quiet a node is: what takes its processor away from work that never waits, and how even that
 * work is. */
#ifndef WYEAST_NOISE_H
#define WYEAST_NOISE_H

#include "../common/ranks_alike.h"

/* Work on the lowest rank of each host for so many seconds, while the others sleep, and print a record
 * for each host. Returns how many that are, or -1 where memory ran out; on other ranks than 0 it is 0.
 * Collective over MPI_COMM_WORLD. */
long print_noise(double seconds, const ranks_alike *of_host);

#endif
