/* What the MPI at hand has of the standard's later versions, where its number does not say. */
#ifndef WYEAST_STANDARD_H
#define WYEAST_STANDARD_H

#include <mpi.h>

#define HAS_MPI3 (MPI_VERSION >= 3)

/* Open MPI 5 says that it is 3.1, and has these of 4.0: partitioned messages and persistent
 * collectives. */
#if MPI_VERSION >= 4 || (defined OMPI_MAJOR_VERSION && OMPI_MAJOR_VERSION >= 5)
#define HAS_MPI4 1
#else
#define HAS_MPI4 0
#endif

/* Calls that count in MPI_Count, and Sessions. Open MPI 5 has the latter alone. */
#define HAS_BIG_COUNTS (MPI_VERSION >= 4)
#define HAS_SESSIONS HAS_MPI4

#endif
