/* Before each source that is compiled for SimGrid: a host is the simulated one, not the one that simulates. */
#ifndef WYEAST_SIMULATED_HOSTS_H
#define WYEAST_SIMULATED_HOSTS_H

#include <mpi.h>
#include <string.h>
#include <unistd.h>

static inline int simulated_host(char *name, size_t length)
{
    char found[MPI_MAX_PROCESSOR_NAME] = "";
    int used = 0;
    if (MPI_Get_processor_name(found, &used) != MPI_SUCCESS)
        return -1;
    strncpy(name, found, length);
    return 0;
}
#define gethostname simulated_host

#endif
