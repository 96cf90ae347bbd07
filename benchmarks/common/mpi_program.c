#include <mpi.h>
#include <stdlib.h>

#include "disturbances.h"
#include "leaving.h"
#include "options.h"
#include "placement.h"
#include "records.h"
#include "waiting.h"
#include "written.h"

/* What every program does once MPI is there. */
static void go_on(const program_description *program, int argc, char **argv, int uncounted)
{
    gather_output();
    if (uncounted)
        leave_at_once(program->name, "stops of this process cannot be counted");
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    complaint about;
    asked_for asked;
    if (parse_options(program, argc, argv, &asked, &about))
        leave_together(program->name, about.text, EXIT_USAGE);
    if (asked == ASKED_RUN)
        return;
    if (rank == 0 && asked == ASKED_HELP)
        print_help(stdout, program);
    if (rank == 0 && asked == ASKED_VERSION)
        printf("%s %s\n", program->name, PROGRAM_VERSION);
    free_options(program);
    leave_with_code_of_rank_0(see_output_written(program->name) ? EXIT_FAILED : EXIT_SOUND);
}

void begin_program(const program_description *program, int *argc, char ***argv)
{
    const int uncounted = begin_disturbances();
    MPI_Init(argc, argv);
    go_on(program, *argc, *argv, uncounted);
}

int begin_program_of_threads(const program_description *program, int *argc, char ***argv)
{
    int level;
    const int uncounted = begin_disturbances();
    MPI_Init_thread(argc, argv, MPI_THREAD_MULTIPLE, &level);
    go_on(program, *argc, *argv, uncounted);
    return level == MPI_THREAD_MULTIPLE;
}

void begin_output(const program_description *program)
{
    char *parameters = parameters_of(program);
    if (!parameters || print_header(stdout, program->name, parameters))
        leave_at_once(program->name, "no memory for the header");
    free(parameters);
    begin_waiting();
}

void end_program(const program_description *program, size_t results)
{
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const rank_ends ends = ends_of_all_ranks();
    const disturbances counted = disturbances_of_all_ranks();
    const char *lost = rank == 0 ? print_end_of(stdout, results, counted, ends) : NULL;
    free(ends.of);
    if (lost)
        fprintf(stderr, "%s: standard output could not be written: %s\n", program->name, lost);
    free_options(program);
    leave_with_code_of_rank_0(lost ? EXIT_FAILED : EXIT_SOUND);
}
