/* What the MPI at hand has, and how it writes what all have. */
#ifndef WYEAST_PROFILE_INTERFACE_H
#define WYEAST_PROFILE_INTERFACE_H

#include <mpi.h>

#if MPI_VERSION >= 3
#define HAS_MPI3 1
#define IN const
#else
#define HAS_MPI3 0
#define IN
#endif

/* Open MPI 5 says that it is 3.1, and has these of 4.0: partitioned messages and persistent
 * collectives. */
#if MPI_VERSION >= 4 || (defined OMPI_MAJOR_VERSION && OMPI_MAJOR_VERSION >= 5)
#define HAS_MPI4 1
#else
#define HAS_MPI4 0
#endif

#define HAS_LARGE_COUNTS (MPI_VERSION >= 4)

#if defined OMPI_MAJOR_VERSION
#define PARTITIONS int *
#else
#define PARTITIONS const int *
#endif

#if defined MPI_IN_PLACE
#define IN_PLACE(buffer) ((buffer) == MPI_IN_PLACE)
#else
#define IN_PLACE(buffer) ((void)(buffer), 0)
#endif

#endif
