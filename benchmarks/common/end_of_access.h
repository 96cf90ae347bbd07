/* One-sided operations of rank 0 in which rank 1 has no part, with time windows. */
#ifndef WYEAST_END_OF_ACCESS_H
#define WYEAST_END_OF_ACCESS_H

/* To be called by both ranks before an iteration. Before rank 1 waits for its clock and nothing else it
 * waits, inside MPI, until rank 0 is through with the iteration before: an MPI may bring an operation to
 * its end only while both ranks call it. */
void await_end_of_access(void *unused);

#endif
