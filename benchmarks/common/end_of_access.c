#include "end_of_access.h"

#include <mpi.h>
#include <stddef.h>

enum { ORIGIN = 0, TARGET = 1 };
enum { TAG_END_OF_ACCESS = 1 };

void await_end_of_access(void *unused)
{
    (void)unused;
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == ORIGIN)
        MPI_Send(NULL, 0, MPI_BYTE, TARGET, TAG_END_OF_ACCESS, MPI_COMM_WORLD);
    else
        MPI_Recv(NULL, 0, MPI_BYTE, ORIGIN, TAG_END_OF_ACCESS, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}
