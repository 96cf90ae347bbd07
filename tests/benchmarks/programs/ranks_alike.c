/* `ranks_alike TEXT ...`: each rank says the text of its number; print what each has found, by rank. */
#include "../../../benchmarks/common/ranks_alike.h"

#include <stdio.h>

int main(int argc, char **argv)
{
    int rank, ranks, sharing, leader = -1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (rank + 1 >= argc)
        MPI_Abort(MPI_COMM_WORLD, 2);
    ranks_alike found;
    find_alike(&found, argv[rank + 1]);
    MPI_Comm_size(found.sharing, &sharing);
    if (found.leaders != MPI_COMM_NULL)
        MPI_Comm_rank(found.leaders, &leader);
    int own[3] = {sharing, leader, found.texts}, all[3 * 16];
    free_alike(&found);
    MPI_Gather(own, 3, MPI_INT, all, 3, MPI_INT, 0, MPI_COMM_WORLD);
    for (int i = 0; rank == 0 && i < ranks; i++)
        printf("%d %d %d\n", all[3 * i], all[3 * i + 1], all[3 * i + 2]);
    MPI_Finalize();
}
