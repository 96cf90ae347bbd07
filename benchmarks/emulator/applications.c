#include "applications.h"

#include <errno.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define FILE_PREFIX "file="
#define LARGEST_FILE ((long)(16 << 20))
#define LONGEST_NAME 40

const char *const placement_names[] = {"consecutive", "cyclic", NULL};

static const char *file_of(const char *text)
{
    const size_t length = strlen(FILE_PREFIX);
    return strncmp(text, FILE_PREFIX, length) == 0 ? text + length : NULL;
}

/* The file's text, to be freed, or NULL with a sentence. */
static char *read_whole(const char *path, long *length, complaint *about)
{
    struct stat status;
    char *text = NULL;
    FILE *file = NULL;
    if (stat(path, &status) == 0 && !S_ISREG(status.st_mode))
        complain(about, "%.200s: not a regular file", path);
    else if (!(file = fopen(path, "rb")))
        complain(about, "%.200s: %s", path, strerror(errno));
    else if (!(text = malloc((size_t)LARGEST_FILE + 1)))
        complain(about, "%.200s: no memory for the file", path);
    else {
        *length = (long)fread(text, 1, (size_t)LARGEST_FILE + 1, file);
        const int failed = ferror(file);
        if (failed)
            complain(about, "%.200s: cannot be read", path);
        else if (*length > LARGEST_FILE)
            complain(about, "%.200s: larger than %ld bytes", path, LARGEST_FILE);
        if (failed || *length > LARGEST_FILE) {
            free(text);
            text = NULL;
        }
    }
    if (file)
        fclose(file);
    return text;
}

/* Read on rank 0 and parse everywhere: a file may be on one node only. */
static int read_graph(const char *path, double compute_mean, graph *read, complaint *about)
{
    int rank;
    long length = -1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    char *text = rank == 0 ? read_whole(path, &length, about) : NULL;
    if (rank == 0 && !text)
        length = -1;
    MPI_Bcast(&length, 1, MPI_LONG, 0, MPI_COMM_WORLD);
    if (length < 0) {
        MPI_Bcast(about->text, (int)sizeof about->text, MPI_CHAR, 0, MPI_COMM_WORLD);
        return -1;
    }
    if (rank != 0)
        text = malloc((size_t)length + 1);
    int short_of_memory = !text, any;
    MPI_Allreduce(&short_of_memory, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (any) {
        free(text);
        return complain(about, "%.200s: no memory for the file on some rank", path);
    }
    MPI_Bcast(text, (int)length, MPI_CHAR, 0, MPI_COMM_WORLD);
    const int failed = parse_graph(path, text, (size_t)length, compute_mean, read, about);
    free(text);
    return failed;
}

/* GRAPH or GRAPH:RANKS; `ranks` stays 0 where the text has none. */
static int split_text(const char *text, char name[LONGEST_NAME + 1], long long *ranks,
                      complaint *about)
{
    const char *colon = strchr(text, ':');
    const size_t length = colon ? (size_t)(colon - text) : strlen(text);
    snprintf(name, LONGEST_NAME + 1, "%.*s", (int)(length < LONGEST_NAME ? length : LONGEST_NAME),
             text);
    const int fewest = fewest_ranks(name);
    if (!fewest || length > LONGEST_NAME)
        return complain(about, "--application %.80s: there is no such graph; emulator --help "
                               "lists them", text);
    *ranks = 0;
    return colon ? parse_number("--application: ranks", colon + 1, fewest, MOST_GRAPH_RANKS,
                                ranks, about)
                 : 0;
}

/* What is left of the world goes in equal parts to the applications that do not say how many. */
static int share_ranks(const choice_list *texts, int *ranks, int world, complaint *about)
{
    char name[LONGEST_NAME + 1];
    long long given, taken = 0;
    int sharing = 0;
    for (size_t a = 0; a < texts->count; a++) {
        taken += ranks[a];
        sharing += ranks[a] == 0;
    }
    if (taken > world || (!sharing && taken < world))
        return complain(about, "the applications need %lld ranks, and the world has %d", taken,
                        world);
    const int left = world - (int)taken;
    for (size_t a = 0, place = 0; a < texts->count; a++) {
        if (ranks[a])
            continue;
        ranks[a] = left / sharing + ((int)place++ < left % sharing);
        (void)split_text(texts->names[a], name, &given, about);
        if (ranks[a] < fewest_ranks(name))
            return complain(about, "--application %.80s: %d of the world's %d ranks are left for "
                                   "it, and it needs %d", texts->names[a], ranks[a], world,
                            fewest_ranks(name));
    }
    return 0;
}

static int place_ranks(application_list *list, const char *placement, complaint *about)
{
    const int cyclic = strcmp(placement, "cyclic") == 0;
    int next = 0, most = 0;
    for (size_t a = 0; a < list->count; a++) {
        application *one = &list->all[a];
        one->world_ranks = calloc((size_t)one->graph.ranks, sizeof *one->world_ranks);
        if (!one->world_ranks)
            return complain(about, "no memory for the applications");
        most = one->graph.ranks > most ? one->graph.ranks : most;
        for (int rank = 0; !cyclic && rank < one->graph.ranks; rank++)
            one->world_ranks[rank] = next++;
    }
    for (int rank = 0; cyclic && rank < most; rank++)
        for (size_t a = 0; a < list->count; a++)
            if (rank < list->all[a].graph.ranks)
                list->all[a].world_ranks[rank] = next++;
    return 0;
}

static int make_graphs(const choice_list *texts, int *ranks, size_t message_bytes,
                       double compute_mean, application_list *made, complaint *about)
{
    char name[LONGEST_NAME + 1];
    long long given;
    int world;
    MPI_Comm_size(MPI_COMM_WORLD, &world);
    for (size_t a = 0; a < texts->count; a++) {
        application *one = &made->all[a];
        one->text = texts->names[a];
        if (file_of(one->text)) {
            if (read_graph(file_of(one->text), compute_mean, &one->graph, about))
                return -1;
            ranks[a] = one->graph.ranks;
        } else if (split_text(one->text, name, &given, about)) {
            return -1;
        } else {
            ranks[a] = (int)given;
        }
    }
    if (share_ranks(texts, ranks, world, about))
        return -1;
    for (size_t a = 0; a < texts->count; a++)
        if (!file_of(made->all[a].text) &&
            (split_text(made->all[a].text, name, &given, about) ||
             build_graph(name, ranks[a], message_bytes, compute_mean, &made->all[a].graph, about)))
            return -1;
    return 0;
}

int make_applications(const choice_list *texts, const char *placement, size_t message_bytes,
                      double compute_mean, application_list *made, complaint *about)
{
    int *ranks = calloc(texts->count, sizeof *ranks);
    made->all = calloc(texts->count, sizeof *made->all);
    made->count = texts->count;
    int failed = !ranks || !made->all;
    if (failed)
        complain(about, "no memory for the applications");
    failed = failed || make_graphs(texts, ranks, message_bytes, compute_mean, made, about) ||
             place_ranks(made, placement, about);
    free(ranks);
    return failed ? -1 : 0;
}

void free_applications(application_list *list)
{
    for (size_t a = 0; list->all && a < list->count; a++) {
        free_graph(&list->all[a].graph);
        free(list->all[a].world_ranks);
    }
    free(list->all);
    *list = (application_list){NULL, 0};
}
