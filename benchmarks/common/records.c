#include "records.h"

#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"

#if MPI_VERSION >= 3
#define LONGEST_LIBRARY MPI_MAX_LIBRARY_VERSION_STRING
#else
#define LONGEST_LIBRARY 64
#endif

#define BLOCKS 5
#define READINGS_OF_A_BLOCK 200

static void find_library(char *text)
{
    text[0] = '\0';
#if MPI_VERSION >= 3
    int length = 0;
    MPI_Get_library_version(text, &length);
    text[strcspn(text, "\n")] = '\0'; /* MPICH continues with its configure line. */
#elif defined(LAM_MPI)
    /* MPI-2 has no call that names the library; LAM's header has its version. */
    snprintf(text, LONGEST_LIBRARY, "LAM/MPI %d.%d.%d", LAM_MAJOR_VERSION, LAM_MINOR_VERSION,
             LAM_RELEASE_VERSION);
#else
    snprintf(text, LONGEST_LIBRARY, "unknown library of MPI-2");
#endif
}

/* A function of ours, since MPI_Wtime may be a macro. */
static double wall_time(void)
{
    return MPI_Wtime();
}

/* What a reading of MPI_Wtime takes, in seconds: the least of some blocks' means. */
static double cost_of_reading(void)
{
    double least = 0.0;
    for (int block = 0; block < BLOCKS; block++) {
        const double began = seconds_now();
        for (int i = 0; i < READINGS_OF_A_BLOCK; i++)
            (void)wall_time();
        const double each = (seconds_now() - began) / READINGS_OF_A_BLOCK;
        if (block == 0 || each < least)
            least = each;
    }
    return least;
}

/* The library's own clock, which times nothing of ours, is measured as another of its properties. */
static void describe_mpi_wtime(char *text, size_t size)
{
    snprintf(text, size, "{\"tick_s\":%.9e,\"resolution_s\":%.9e,\"cost_s\":%.9e}", MPI_Wtick(),
             smallest_step(wall_time), cost_of_reading());
}

int print_header(FILE *out, const char *program, const char *parameters)
{
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    char mpi_wtime[128] = "";
    if (rank == 0)
        describe_mpi_wtime(mpi_wtime, sizeof mpi_wtime);
    const output_kind kind = {RECORD_FORMAT, CLOCK_NAME, clock_tick(), seconds_now, mpi_wtime};
    return print_header_of(&kind, out, program, parameters);
}

int print_header_of(const output_kind *kind, FILE *out, const char *program,
                    const char *parameters)
{
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    rank_place here, *places = NULL;
    find_place(&here);
    int short_of_memory = 0;
    if (rank == 0) {
        places = calloc((size_t)ranks, sizeof *places);
        short_of_memory = !places;
    }
    MPI_Bcast(&short_of_memory, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (short_of_memory)
        return -1;
    MPI_Gather(&here, (int)sizeof here, MPI_BYTE, places, (int)sizeof here, MPI_BYTE, 0,
               MPI_COMM_WORLD);
    if (rank == 0) {
        int version, subversion;
        MPI_Get_version(&version, &subversion);
        char standard[32], library[LONGEST_LIBRARY];
        snprintf(standard, sizeof standard, "%d.%d", version, subversion);
        find_library(library);
        print_header_record(out, &(header_facts){
            .format = kind->format,
            .program = program,
            .library = library,
            .mpi_standard = standard,
            .places = places,
            .ranks = (size_t)ranks,
            .clock = kind->clock,
            .clock_tick = kind->clock_tick,
            .clock_resolution = smallest_step(kind->read_clock),
            .mpi_wtime = kind->mpi_wtime,
            .parameters = parameters,
        });
    }
    free(places);
    return 0;
}
