/* xhpl: HPL by itself, from the sources that the HPC Challenge suite carries. It reads HPL.dat in
 * the working folder and prints HPL's ordinary output; hpl_dat writes the input. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../common/disturbances.h"
#include "../common/placement.h"
#include "../common/waiting.h"
#include "../common/written.h"
/* After mpi.h, which HPL's own header expects. */
#include "hpl.h"

#define PROGRAM "xhpl"
#define INPUT "HPL.dat"
#define LINES_OF_INPUT 31

int HPL_main(int argc, char **argv, HPL_RuntimeData *data, int *failure);

/* HPL calls this on every rank when its input is unreadable. The suite then falls back on values
 * of its own, which would measure something that was not requested; here the run ends. */
int HPCC_Defaults(HPL_T_test *test, int *ns, int *n, int *nbs, int *nb, HPL_T_ORDER *order,
                  int *npqs, int *p, int *q, int *npfs, HPL_T_FACT *pf, int *nbms, int *nbm,
                  int *ndvs, int *ndv, int *nrfs, HPL_T_FACT *rf, int *ntps, HPL_T_TOP *tp,
                  int *ndhs, int *dh, HPL_T_SWAP *swap, int *swap_threshold, int *l1, int *u,
                  int *equilibration, int *alignment, MPI_Comm communicator);

int HPCC_Defaults(HPL_T_test *test, int *ns, int *n, int *nbs, int *nb, HPL_T_ORDER *order,
                  int *npqs, int *p, int *q, int *npfs, HPL_T_FACT *pf, int *nbms, int *nbm,
                  int *ndvs, int *ndv, int *nrfs, HPL_T_FACT *rf, int *ntps, HPL_T_TOP *tp,
                  int *ndhs, int *dh, HPL_T_SWAP *swap, int *swap_threshold, int *l1, int *u,
                  int *equilibration, int *alignment, MPI_Comm communicator)
{
    (void)test, (void)ns, (void)n, (void)nbs, (void)nb, (void)order, (void)npqs, (void)p;
    (void)q, (void)npfs, (void)pf, (void)nbms, (void)nbm, (void)ndvs, (void)ndv, (void)nrfs;
    (void)rf, (void)ntps, (void)tp, (void)ndhs, (void)dh, (void)swap, (void)swap_threshold;
    (void)l1, (void)u, (void)equilibration, (void)alignment;
    int rank;
    MPI_Comm_rank(communicator, &rank);
    if (rank == 0) {
        fprintf(stderr, PROGRAM ": " INPUT " has an illegal value, or asks for more ranks than "
                                "there are; write it with hpl_dat\n");
        fflush(stderr);
    }
    MPI_Barrier(communicator);
    MPI_Finalize();
    exit(1);
}

/* Whether the input is there and whole. HPL itself reads the last line again and again where lines
 * are missing, and would measure something that was not requested. */
static int is_readable(void)
{
    FILE *input = fopen(INPUT, "r");
    if (!input) {
        fprintf(stderr, PROGRAM ": " INPUT " cannot be read in the working folder; write it with "
                                "hpl_dat, see hpl_dat --help\n");
        return 0;
    }
    int lines = 0;
    for (int c, last = '\n'; (c = fgetc(input)) != EOF; last = c)
        lines += last == '\n';
    fclose(input);
    if (lines < LINES_OF_INPUT)
        fprintf(stderr, PROGRAM ": " INPUT " has %d lines, and HPL reads %d; write it with "
                                "hpl_dat\n", lines, LINES_OF_INPUT);
    return lines >= LINES_OF_INPUT;
}

int main(int argc, char **argv)
{
    const int uncounted = begin_disturbances();
    MPI_Init(&argc, &argv);
    int rank, readable = 1, failure = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (uncounted) {
        fprintf(stderr, PROGRAM ": stops of this process cannot be counted\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    if (rank == 0)
        readable = is_readable();
    MPI_Bcast(&readable, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (!readable) {
        MPI_Finalize();
        return 1;
    }
    begin_waiting();
    HPL_RuntimeData data;
    memset(&data, 0, sizeof data);
    HPL_main(argc, argv, &data, &failure);
    if (rank == 0 && !failure && !(data.Gflops > 0)) {
        fprintf(stderr, PROGRAM ": nothing was solved; see N in " INPUT "\n");
        failure = 1;
    }
    const rank_ends ends = ends_of_all_ranks();
    const disturbances counted = disturbances_of_all_ranks();
    if (rank == 0)
        print_disturbances(stdout, counted, ends);
    free(ends.of);
    if (rank == 0 && see_output_written(PROGRAM))
        failure = 1;
    MPI_Bcast(&failure, 1, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Finalize();
    /* HPL counts failed and skipped tests as failure; its own output says which. */
    return failure ? 1 : 0;
}
