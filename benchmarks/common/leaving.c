#include "leaving.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* Launchers (MPICH's mpiexec is one) drop what they have not read yet when a rank ends all. */
#define READING_NS 200000000L

void leave_together(const char *program, const char *sentence, int code)
{
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0 && sentence)
        fprintf(stderr, "%s: %s\n", program, sentence);
    leave_with_code_of_rank_0(code);
}

void leave_at_once(const char *program, const char *sentence)
{
    fprintf(stderr, "%s: %s\n", program, sentence);
    fflush(stderr);
    const struct timespec reading = {0, READING_NS};
    nanosleep(&reading, NULL);
    MPI_Abort(MPI_COMM_WORLD, EXIT_FAILED);
    abort();
}

void leave_with_code_of_rank_0(int code)
{
    MPI_Bcast(&code, 1, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Finalize();
    exit(code);
}
