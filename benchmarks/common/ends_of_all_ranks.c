#include <mpi.h>
#include <stdlib.h>

#include "placement.h"

rank_ends ends_of_all_ranks(void)
{
    int rank, ranks, has_room = 1;
    rank_end here, *of = NULL;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
    find_end(&here);
    if (rank == 0) {
        of = calloc((size_t)ranks, sizeof *of);
        has_room = of != NULL;
    }
    /* By names that no profile counts among the program's calls. */
    PMPI_Bcast(&has_room, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (has_room)
        PMPI_Gather(&here, (int)sizeof here, MPI_BYTE, of, (int)sizeof here, MPI_BYTE, 0,
                    MPI_COMM_WORLD);
    return (rank_ends){of, (size_t)ranks};
}
