/* The profile's beginning and end: counting starts after MPI_Init, and before MPI_Finalize rank 0
 * gathers what all ranks have counted and writes it to the file that WYEAST_PROFILE names. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../common/records.h"
#include "communicators.h"
#include "counters.h"
#include "nodes.h"
#include "profile_records.h"
#include "requests.h"

#define EXPORTED __attribute__((visibility("default")))
#define VARIABLE "WYEAST_PROFILE"
#define FORMAT "wyeast-profile-1"
#define PIECE_BYTES 65536
#define TAG 0

/* At the end of MPI_Init, and at the beginning of MPI_Finalize. */
static uint64_t began, ended;
static struct rusage used_at_begin, used_at_end;

/* Of a rank's records: their text's length, below 0 where there is none, and their number. */
typedef struct {
    long long length, records;
} extent;

static double seconds_now(void)
{
    return (double)nanoseconds_now() * 1e-9;
}

static double seconds_between(struct timeval from, struct timeval to)
{
    return (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_usec - from.tv_usec) * 1e-6;
}

static void begin_profile(void)
{
    int ranks = 0, level = MPI_THREAD_SINGLE;
    PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
    PMPI_Query_thread(&level);
    if (start_translating()) {
        fprintf(stderr, "wyeast_profile: MPI refuses attributes, so nothing is counted\n");
        return;
    }
    getrusage(RUSAGE_SELF, &used_at_begin);
    began = nanoseconds_now();
    start_counting(ranks, level == MPI_THREAD_MULTIPLE);
}

EXPORTED int MPI_Init(int *argc, char ***argv)
{
    int code = PMPI_Init(argc, argv);
    if (code == MPI_SUCCESS)
        begin_profile();
    return code;
}

EXPORTED int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    int code = PMPI_Init_thread(argc, argv, required, provided);
    if (code == MPI_SUCCESS)
        begin_profile();
    return code;
}

/* Return the text of this rank's records, to be freed; NULL where memory ran out. Of more ranks than are
 * listed the lowest of each node has its records, and the others have none. */
static char *make_text(int rank, int ranks, extent *own)
{
    rank_span span = {
        .rank = rank,
        .wall = (double)(ended - began) * 1e-9,
        .user = seconds_between(used_at_begin.ru_utime, used_at_end.ru_utime),
        .system = seconds_between(used_at_begin.ru_stime, used_at_end.ru_stime),
    };
    counters *sum = sum_of_threads(&span.threads), *of_node = NULL;
    uint64_t never_completed = free_awaited();
    world_nodes nodes = {.of_rank = NULL};
    bool listed = ranks <= MOST_RANKS_LISTED, failed = false;
    if (!listed) {
        failed = find_nodes(&nodes, ranks) != 0 ||
                 sum_of_node(&nodes, sum, never_completed, &span, &of_node) != 0;
        sum = of_node;
        never_completed = 0;
    }
    char *text = NULL;
    size_t length = 0;
    bool silent = !listed && !failed && !of_node;
    *own = (extent){silent && !memory_ran_out() ? 0 : -1, 0};
    FILE *out = memory_ran_out() || failed || silent ? NULL : open_memstream(&text, &length);
    if (out) {
        size_t records = print_profile_records(out, &span, sum, never_completed);
        if (fclose(out) == 0)
            *own = (extent){(long long)length, (long long)records};
    }
    if (!listed)
        free_nodes(&nodes);
    free(of_node);
    free_counters();
    return text;
}

/* Send a text in pieces, each when rank 0 asks for it, so that it never has to hold a whole one. */
static void send_text(const char *text, long long length, MPI_Comm comm)
{
    for (long long at = 0; at < length; at += PIECE_BYTES) {
        long long left = length - at;
        int piece = left < PIECE_BYTES ? (int)left : PIECE_BYTES;
        char copy[PIECE_BYTES]; /* MPI before 3 takes no constant. */
        memcpy(copy, text + at, (size_t)piece);
        PMPI_Ssend(copy, piece, MPI_BYTE, 0, TAG, comm);
    }
}

static void copy_text(FILE *out, int from, long long length, MPI_Comm comm)
{
    char piece[PIECE_BYTES];
    for (long long at = 0; at < length; at += PIECE_BYTES) {
        long long left = length - at;
        int bytes = left < PIECE_BYTES ? (int)left : PIECE_BYTES;
        PMPI_Recv(piece, bytes, MPI_BYTE, from, TAG, comm, MPI_STATUS_IGNORE);
        fwrite(piece, 1, (size_t)bytes, out);
    }
}

/* Open a file next to the wanted one; say so if that fails. */
static FILE *open_aside(const char *path, char **aside)
{
    if (!path || !*path) {
        fprintf(stderr, "wyeast_profile: %s names no file, so no profile is written\n", VARIABLE);
        return NULL;
    }
    size_t room = strlen(path) + sizeof ".new";
    *aside = malloc(room);
    if (!*aside) {
        fprintf(stderr, "wyeast_profile: no memory, so no profile is written\n");
        return NULL;
    }
    snprintf(*aside, room, "%s.new", path);
    FILE *out = fopen(*aside, "w");
    if (!out)
        fprintf(stderr, "wyeast_profile: %s cannot be written, so there is no profile: %s\n", path,
                strerror(errno));
    return out;
}

/* Put the whole file in its place, or say why there is none. */
static void put_into_place(FILE *out, const char *aside, const char *path, const char *missing)
{
    int status = ferror(out) || fflush(out) != 0 || fsync(fileno(out)) != 0 ? -1 : 0;
    if (fclose(out) != 0)
        status = -1;
    if (!missing && (status || rename(aside, path) != 0))
        missing = strerror(errno);
    if (missing) {
        fprintf(stderr, "wyeast_profile: %s could not be written, so there is no profile: %s\n",
                path, missing);
        (void)remove(aside);
    }
}

/* Have all ranks' records written, each after the one before; only rank 0 has a file. */
static const char *write_records(FILE *out, int rank, int ranks, MPI_Comm comm)
{
    extent own, *extents = rank == 0 ? calloc((size_t)ranks, sizeof *extents) : NULL;
    char *text = make_text(rank, ranks, &own), *arguments = NULL;
    int ready = rank == 0 && extents && (arguments = arguments_of_program());
    PMPI_Bcast(&ready, 1, MPI_INT, 0, comm);
    const char *missing = ready ? NULL : "no memory";
    const output_kind kind = {FORMAT, "CLOCK_MONOTONIC", 1e-9, seconds_now, NULL};
    if (ready && print_header_of(&kind, out, name_of_program(), arguments) != 0)
        missing = "no memory";
    if (!missing) {
        PMPI_Gather(&own, (int)sizeof own, MPI_BYTE, extents, (int)sizeof own, MPI_BYTE, 0, comm);
        size_t records = 0;
        if (rank != 0)
            send_text(text, own.length, comm);
        else if (own.length > 0)
            fwrite(text, 1, (size_t)own.length, out);
        for (int from = 0; rank == 0 && from < ranks; from++) {
            if (extents[from].length < 0)
                missing = "a rank had no memory";
            if (from > 0)
                copy_text(out, from, extents[from].length, comm);
            records += (size_t)extents[from].records;
        }
        const char *lost = rank == 0 ? print_end(out, records) : NULL;
        if (lost)
            missing = lost;
    }
    free(arguments);
    free(extents);
    free(text);
    return missing;
}

static void write_profile(void)
{
    MPI_Comm comm;
    int rank = 0, ranks = 0, writable = 0;
    if (PMPI_Comm_dup(MPI_COMM_WORLD, &comm) != MPI_SUCCESS)
        return;
    PMPI_Comm_rank(comm, &rank);
    PMPI_Comm_size(comm, &ranks);
    const char *path = getenv(VARIABLE);
    char *aside = NULL;
    FILE *out = NULL;
    if (rank == 0) {
        out = open_aside(path, &aside);
        writable = out != NULL;
    }
    PMPI_Bcast(&writable, 1, MPI_INT, 0, comm);
    if (writable) {
        const char *missing = write_records(out, rank, ranks, comm);
        if (rank == 0)
            put_into_place(out, aside, path, missing);
    } else {
        free_awaited();
        free_counters();
    }
    free(aside);
    PMPI_Comm_free(&comm);
}

/* MPICH's comes back while its launcher is busy, and the program goes on to its end: a rank that has
 * given up has no part in a profile, so there is none. */
EXPORTED int MPI_Abort(MPI_Comm comm, int code)
{
    stop_counting();
    return PMPI_Abort(comm, code);
}

EXPORTED int MPI_Finalize(void)
{
    if (profiling) {
        /* Before the ranks wait for each other in writing. */
        ended = nanoseconds_now();
        getrusage(RUSAGE_SELF, &used_at_end);
        stop_counting();
        write_profile();
        stop_translating();
    }
    return PMPI_Finalize();
}
