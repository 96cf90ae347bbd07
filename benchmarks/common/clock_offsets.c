#include "clock_offsets.h"

#include <mpi.h>

#define TAG 77
#define ROUND_TRIPS 50

clock_offset measure_clock_offset(void)
{
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    clock_offset found = {0.0, 0.0};
    for (int other = 1; other < ranks; other++)
        for (int i = 0; i < ROUND_TRIPS; i++) {
            double there = 0.0;
            if (rank == 0) {
                MPI_Recv(&there, 1, MPI_DOUBLE, other, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                there = MPI_Wtime();
                MPI_Send(&there, 1, MPI_DOUBLE, other, TAG, MPI_COMM_WORLD);
            } else if (rank == other) {
                double began = MPI_Wtime();
                MPI_Send(&began, 1, MPI_DOUBLE, 0, TAG, MPI_COMM_WORLD);
                MPI_Recv(&there, 1, MPI_DOUBLE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                double ended = MPI_Wtime(), half = (ended - began) / 2;
                /* Of the shortest round trip it is best known when it was at rank 0. */
                if (i == 0 || half < found.error)
                    found = (clock_offset){there - (began + half), half};
            }
        }
    return found;
}
