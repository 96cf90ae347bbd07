/* What the MPI at hand has, and how it writes what all have. */
#ifndef WYEAST_PROFILE_INTERFACE_H
#define WYEAST_PROFILE_INTERFACE_H

#include "../common/standard.h"

#if HAS_MPI3
#define IN const
#else
#define IN
#endif

#define HAS_LARGE_COUNTS (MPI_VERSION >= 4)

/* The list of MPI_Pready_list is constant in the standard; Open MPI 5.0 and MPICH 4.0 declare it
 * without, and others that follow them may. So the declaration itself is asked. */
#define PARTITIONS \
    __typeof__(_Generic(&PMPI_Pready_list, int (*)(int, int *, MPI_Request): (int *)0, \
                        default: (const int *)0))

#if defined MPI_IN_PLACE
#define IN_PLACE(buffer) ((buffer) == MPI_IN_PLACE)
#else
#define IN_PLACE(buffer) ((void)(buffer), 0)
#endif

#endif
