/* How far the ranks' clocks are from rank 0's, for windows that begin at the same time. */
#ifndef WYEAST_CLOCK_OFFSETS_H
#define WYEAST_CLOCK_OFFSETS_H

/* Both in seconds: add the offset to this rank's MPI_Wtime to have rank 0's; it is wrong by at most
 * the error, half the shortest round trip by which it was found. */
typedef struct {
    double offset, error;
} clock_offset;

/* Measure this rank's offset. Collective over MPI_COMM_WORLD. */
clock_offset measure_clock_offset(void);

#endif
