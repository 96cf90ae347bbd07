#include "dissemination.h"

#include <stddef.h>
#include <time.h>

/* One number for all rounds: between two ranks messages stay in order, and no two rounds of a barrier
 * have the same distance. */
enum { TAG = 78, PATIENT_TAG };
/* How long a patient rank sleeps between two looks, in ns: at first, and where it has waited long. */
#define SHORTEST_NAP_NS 20000L
#define LONGEST_NAP_NS 1000000L

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

/* Sleep longer and longer until both are done; how long at first is kept for the next call. */
static void sleep_until_done(MPI_Request requests[2], struct timespec *nap)
{
    for (int is_done = 0;;) {
        MPI_Testall(2, requests, &is_done, MPI_STATUSES_IGNORE);
        if (is_done)
            return;
        nanosleep(nap, NULL);
        if (nap->tv_nsec < LONGEST_NAP_NS)
            nap->tv_nsec *= 2;
    }
}

void patient_barrier(MPI_Comm comm)
{
    struct timespec nap = {0, SHORTEST_NAP_NS};
    int rank, ranks;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    for (long long distance = 1; distance < ranks; distance *= 2) {
        const int after = (int)((rank + distance) % ranks);
        const int before = (int)((rank + ranks - distance) % ranks);
        MPI_Request requests[2];
        MPI_Irecv(NULL, 0, MPI_BYTE, before, PATIENT_TAG, comm, &requests[0]);
        MPI_Isend(NULL, 0, MPI_BYTE, after, PATIENT_TAG, comm, &requests[1]);
        sleep_until_done(requests, &nap);
    }
}
