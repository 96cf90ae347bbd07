/* What the MPI says of itself by its tool interface (MPI_T): limits, algorithms and transports that it was
 * told or has chosen, and what it counts. */
#ifndef WYEAST_LIBRARY_VARIABLES_H
#define WYEAST_LIBRARY_VARIABLES_H

#include <stddef.h>

typedef struct library_counters library_counters;

/* Read what a rank's library counts as a whole, in numbers; NULL where there is no such interface. */
library_counters *begin_counters(void);

/* Print the control variables that say how messages go, and each counter as it was and as it is. Frees the
 * counters. Returns how many records that were. */
size_t print_library_variables(library_counters *counters);

#endif
