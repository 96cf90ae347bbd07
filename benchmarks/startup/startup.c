/* startup: when each rank was there, and when rank 0 had heard of all of them; Kearns 2003, section
 * 4.2.2 and Table 9. Output: benchmarks/FORMAT.md. */
#include <getopt.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../common/arguments.h"
#include "../common/disturbances.h"
#include "../common/leaving.h"
#include "../common/placement.h"
#include "../common/record_pieces.h"
#include "../common/records.h"
#include "../common/standard.h"
#include "../common/written.h"

#define PROGRAM "startup"
#define TAG 1
#define LATEST 1e11 /* Seconds since the epoch, some 3000 years after it. */

static const char help[] =
    "startup: when each rank was started and ready, and when rank 0 had an integer of each\n"
    "\n"
    "usage: mpiexec -n N startup [options]    (N at least 2)\n"
    "\n"
    "  --since SECONDS    when the launch began, in seconds since the epoch as `date +%s.%N`\n"
    "                     prints them; prints a record of durations as well\n"
    "  --sessions         begin with MPI_Session_init and a communicator of all processes, in\n"
    "                     place of MPI_Init\n"
    "  --version, --help\n"
    "\n"
    "Every rank but 0 sends its number to rank 0. Output is JSON Lines; times are seconds since\n"
    "the epoch by the clock of the rank's own node, so only those of one node can be compared\n"
    "exactly.\n"
    "\n"
    "example: mpiexec -n 2 startup --since $(date +%s.%N)\n";

typedef struct {
    double since;
    int sessions, help, version;
} options;

static int parse(int argc, char **argv, options *chosen, complaint *about)
{
    enum { SINCE = 256, SESSIONS, HELP, VERSION };
    static const struct option known[] = {
        {"since", required_argument, NULL, SINCE},
        {"sessions", no_argument, NULL, SESSIONS},
        {"help", no_argument, NULL, HELP},
        {"version", no_argument, NULL, VERSION},
        {NULL, 0, NULL, 0},
    };
    memset(chosen, 0, sizeof *chosen);
    opterr = 0;
    for (int option, at = 1; (option = getopt_long(argc, argv, "+", known, NULL)) != -1;
         at = optind) {
        switch (option) {
        case SINCE:
            if (parse_fraction("--since", optarg, 0, LATEST, &chosen->since, about))
                return -1;
            break;
        case SESSIONS:
            chosen->sessions = 1;
            break;
        case HELP:
            chosen->help = 1;
            break;
        case VERSION:
            chosen->version = 1;
            break;
        default:
            return complain(about, "%.80s: unknown option or missing value; see startup --help",
                            argv[at]);
        }
    }
    if (optind < argc)
        return complain(about, "%.80s: unexpected argument; see startup --help", argv[optind]);
    return 0;
}

/* Seconds since the epoch; 0 where there is no such clock. CLOCK_MONOTONIC cannot be used: it begins
 * when the node does, and the launch is timed by another program. */
static double wall_clock(void)
{
    struct timespec now;
    if (clock_gettime(CLOCK_REALTIME, &now) != 0)
        return 0;
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* What rank 0 received that it should not have. */
typedef struct {
    int sender, integer; /* The sender is -1 where all is well. */
} mistake;

/* Every other rank of a communicator sends its number to rank 0, which returns when it had the last. Sets
 * the first mistake on every rank. */
static double hear_of_all(MPI_Comm all, mistake *found)
{
    int rank, ranks;
    MPI_Comm_rank(all, &rank);
    MPI_Comm_size(all, &ranks);
    int values[2] = {-1, 0};
    double heard = 0;
    if (rank != 0) {
        MPI_Send(&rank, 1, MPI_INT, 0, TAG, all);
    } else {
        for (int sender = 1; sender < ranks; sender++) {
            int integer = -1;
            MPI_Recv(&integer, 1, MPI_INT, sender, TAG, all, MPI_STATUS_IGNORE);
            if (integer != sender && values[0] < 0) {
                values[0] = sender;
                values[1] = integer;
            }
        }
        heard = wall_clock();
    }
    MPI_Bcast(values, 2, MPI_INT, 0, all);
    *found = (mistake){values[0], values[1]};
    return heard;
}

/* By whose communicator the ranks reach each other first. */
typedef struct {
    MPI_Comm all;
#if HAS_SESSIONS
    MPI_Session session;
#endif
    int by_session;
} beginning;

#if HAS_SESSIONS
static int is_asked(int argc, char **argv, const char *word)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], word) == 0)
            return 1;
    return 0;
}
#endif

/* Have MPI; what is not of the requested kind MPI does not have. */
static beginning begin_mpi(int *argc, char ***argv)
{
    beginning begun = {.all = MPI_COMM_WORLD};
#if HAS_SESSIONS
    if (is_asked(*argc, *argv, "--sessions")) {
        MPI_Group everyone;
        MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &begun.session);
        MPI_Group_from_session_pset(begun.session, "mpi://WORLD", &everyone);
        MPI_Comm_create_from_group(everyone, "wyeast startup", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL,
                                   &begun.all);
        MPI_Group_free(&everyone);
        begun.by_session = 1;
        return begun;
    }
#endif
    MPI_Init(argc, argv);
    return begun;
}

/* What is not timed takes the world: it begins behind a session that was. */
static void have_world(beginning *begun, int *argc, char ***argv)
{
    if (!begun->by_session)
        return;
    MPI_Init(argc, argv);
#if HAS_SESSIONS
    MPI_Comm_free(&begun->all);
    MPI_Session_finalize(&begun->session);
#endif
}

static void print_epoch(FILE *out, double seconds)
{
    /* A double has a quarter of a microsecond left at today's date. */
    fprintf(out, "%.6f", seconds);
}

static void print_times(const char *key, const double *times, int ranks)
{
    printf(",\"%s\":[", key);
    for (int i = 0; i < ranks; i++) {
        fputs(i ? "," : "", stdout);
        print_epoch(stdout, times[i]);
    }
    fputc(']', stdout);
}

static void print_range(const char *key, const double *from, const double *to, int ranks)
{
    double least = to[0] - from[0], most = least;
    for (int i = 1; i < ranks; i++) {
        double duration = to[i] - from[i];
        least = duration < least ? duration : least;
        most = duration > most ? duration : most;
    }
    printf(",\"%s\":{\"min\":%.6f,\"max\":%.6f}", key, least, most);
}

static void print_startup(const double *entered, const double *initialised, double heard,
                          int ranks)
{
    printf("{\"record\":\"result\",\"operation\":\"startup\",\"clock\":\"CLOCK_REALTIME\","
           "\"ranks\":%d",
           ranks);
    print_times("main_s", entered, ranks);
    print_times("initialised_s", initialised, ranks);
    fputs(",\"last_integer_s\":", stdout);
    print_epoch(stdout, heard);
    fputs("}\n", stdout);
}

static void print_durations(double since, double *launched, const double *entered,
                            const double *initialised, double heard, int ranks)
{
    for (int i = 0; i < ranks; i++)
        launched[i] = since;
    fputs("{\"record\":\"result\",\"operation\":\"startup_durations\",\"since_s\":", stdout);
    print_epoch(stdout, since);
    print_range("launch_to_main_s", launched, entered, ranks);
    print_range("main_to_initialised_s", entered, initialised, ranks);
    printf(",\"launch_to_last_integer_s\":%.6f}\n", heard - since);
}

int main(int argc, char **argv)
{
    double entered = wall_clock();
    /* Stops alone: one call of the system is less than the microsecond to which times are printed,
     * and looking for the links is not. */
    const int uncounted = begin_stops();
    beginning begun = begin_mpi(&argc, &argv);
    double initialised = wall_clock();
    /* Before anything else, also before the arguments: it is what is timed. */
    mistake found;
    double heard = hear_of_all(begun.all, &found);
    have_world(&begun, &argc, &argv);
    gather_output();
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);

    if (uncounted)
        leave_at_once(PROGRAM, "stops of this process cannot be counted");
    options chosen;
    complaint about;
    if (parse(argc, argv, &chosen, &about))
        leave_together(PROGRAM, about.text, EXIT_USAGE);
    if (chosen.help || chosen.version) {
        if (rank == 0)
            fputs(chosen.help ? help : PROGRAM " " PROGRAM_VERSION "\n", stdout);
        leave_with_code_of_rank_0(see_output_written(PROGRAM) ? EXIT_FAILED : EXIT_SOUND);
    }
    if (chosen.sessions && !begun.by_session)
        leave_together(PROGRAM, "--sessions: this MPI has no MPI_Session_init", EXIT_USAGE);
    if (ranks < 2) {
        complain(&about, "the world has %d rank, and nobody sends to it: start it with mpiexec "
                         "-n 2 or more (and the mpiexec of the MPI it was built with)", ranks);
        leave_together(PROGRAM, about.text, EXIT_USAGE);
    }
    if (found.sender >= 0) {
        complain(&about, "rank 0 received %d from rank %d, which should have sent its own number",
                 found.integer, found.sender);
        leave_together(PROGRAM, about.text, EXIT_FAILED);
    }
    /* Rank 0's own clock is the one that `heard` is of, so only it can contradict --since. */
    MPI_Bcast(&heard, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    if (chosen.since > heard) {
        complain(&about, "--since %.6f: is later than the last integer, which came at %.6f",
                 chosen.since, heard);
        leave_together(PROGRAM, about.text, EXIT_USAGE);
    }

    /* main's times, MPI_Init's, and room for the launch's. */
    double *times = calloc(3 * (size_t)ranks, sizeof *times);
    char since[40] = "null", parameters[120];
    if (chosen.since > 0)
        snprintf(since, sizeof since, "%.6f", chosen.since);
    snprintf(parameters, sizeof parameters, "{\"since_s\":%s,\"sessions\":%s}", since,
             chosen.sessions ? "true" : "false");
    if (!times || print_header(stdout, PROGRAM, parameters))
        leave_at_once(PROGRAM, "no memory for the times of all ranks");
    MPI_Gather(&entered, 1, MPI_DOUBLE, times, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    MPI_Gather(&initialised, 1, MPI_DOUBLE, times + ranks, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    size_t results = chosen.since > 0 ? 2 : 1;
    if (rank == 0)
        print_startup(times, times + ranks, heard, ranks);
    if (rank == 0 && chosen.since > 0)
        print_durations(chosen.since, times + 2 * ranks, times, times + ranks, heard, ranks);

    const disturbances counted = disturbances_of_all_ranks();
    const rank_ends ends = ends_of_all_ranks();
    const char *lost = rank == 0 ? print_end_of(stdout, results, counted, ends) : NULL;
    free(ends.of);
    if (lost)
        fprintf(stderr, PROGRAM ": standard output could not be written: %s\n", lost);
    free(times);
    leave_with_code_of_rank_0(lost ? EXIT_FAILED : EXIT_SOUND);
}
