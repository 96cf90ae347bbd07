#include "dissemination.h"

#include <stddef.h>

/* One number for all rounds: between two ranks messages stay in order, and no two rounds of a barrier
 * have the same distance. */
enum { TAG = 78 };

/* After round k a rank has heard, directly or not, of the 2^(k+1) - 1 ranks before it. */
void dissemination_barrier(MPI_Comm comm)
{
    int rank, ranks;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    for (long long distance = 1; distance < ranks; distance *= 2) {
        const int after = (int)((rank + distance) % ranks);
        const int before = (int)((rank + ranks - distance) % ranks);
        MPI_Sendrecv(NULL, 0, MPI_BYTE, after, TAG, NULL, 0, MPI_BYTE, before, TAG, comm,
                     MPI_STATUS_IGNORE);
    }
}
