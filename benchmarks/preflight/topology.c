#include "topology.h"

#include <dirent.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../common/record_pieces.h"

#define LONGEST_PATH 4096
/* Of a list of processors, such as 0-63,128-191: a page, as long as the kernel's own files were. */
#define LONGEST_LIST 4096
#define MOST_CACHES 10
enum { TAG_TEXT = 31 };

/* Text that grows; no longer written to once memory ran out. */
typedef struct {
    char *text;
    size_t length, room;
    int failed;
} growing;

static void add(growing *to, const char *text)
{
    const size_t more = strlen(text);
    if (!to->failed && to->length + more >= to->room) {
        const size_t room = 2 * (to->length + more) + LONGEST_LIST;
        char *grown = realloc(to->text, room);
        to->failed = !grown;
        if (grown) {
            to->text = grown;
            to->room = room;
        }
    }
    if (to->failed)
        return;
    memcpy(to->text + to->length, text, more + 1);
    to->length += more;
}

/* The only line of a file. Returns 0, or -1 where there is none or it is cut off, or it is no list of
 * processors or word. */
static int read_line(const char *folder, const char *name, char line[LONGEST_LIST])
{
    char path[LONGEST_PATH];
    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path)
        return -1;
    FILE *file = fopen(path, "r");
    if (!file)
        return -1;
    const int found = fgets(line, LONGEST_LIST, file) != NULL;
    const int is_whole = found && (strchr(line, '\n') || fgetc(file) == EOF);
    fclose(file);
    if (!is_whole)
        return -1;
    line[strcspn(line, "\n")] = '\0';
    return line[0] && !strpbrk(line, "\"\\") ? 0 : -1;
}

/* Objects of one kind: a list of lists, each once. */
typedef struct {
    growing lists;
} object_kind;

static void add_object(object_kind *kind, const char *processors)
{
    char quoted[LONGEST_LIST + 4];
    snprintf(quoted, sizeof quoted, "\"%s\"", processors);
    if (kind->lists.text && strstr(kind->lists.text, quoted))
        return;
    add(&kind->lists, kind->lists.length ? "," : "");
    add(&kind->lists, quoted);
}

static void end_kind(growing *all, const char *name, object_kind *kind)
{
    if (kind->lists.length) {
        add(all, all->length > 1 ? ",{\"kind\":\"" : "{\"kind\":\"");
        add(all, name);
        add(all, "\",\"processors\":[");
        add(all, kind->lists.text);
        add(all, "]}");
    }
    all->failed |= kind->lists.failed;
    free(kind->lists.text);
    *kind = (object_kind){0};
}

/* Call something for each processor that the kernel has, with the processor's folder. */
static void for_each_processor(const char *sys, void (*look)(const char *folder, object_kind *kind,
                                                             int level),
                               object_kind *kind, int level)
{
    char folder[LONGEST_PATH];
    for (int p = 0; p < MOST_PROCESSORS; p++)
        if (snprintf(folder, sizeof folder, "%s/devices/system/cpu/cpu%d", sys, p) <
            (int)sizeof folder)
            look(folder, kind, level);
}

static void look_at_core(const char *folder, object_kind *kind, int level)
{
    char list[LONGEST_LIST];
    (void)level;
    if (read_line(folder, "topology/thread_siblings_list", list) == 0)
        add_object(kind, list);
}

static void look_at_package(const char *folder, object_kind *kind, int level)
{
    char list[LONGEST_LIST];
    (void)level;
    if (read_line(folder, "topology/core_siblings_list", list) == 0)
        add_object(kind, list);
}

static void look_at_cache(const char *folder, object_kind *kind, int level)
{
    char name[80], line[LONGEST_LIST];
    for (int i = 0; i < MOST_CACHES; i++) {
        snprintf(name, sizeof name, "cache/index%d/level", i);
        if (read_line(folder, name, line) || atoi(line) != level)
            continue;
        snprintf(name, sizeof name, "cache/index%d/type", i);
        if (read_line(folder, name, line) || strcmp(line, "Instruction") == 0)
            continue;
        snprintf(name, sizeof name, "cache/index%d/shared_cpu_list", i);
        if (read_line(folder, name, line) == 0)
            add_object(kind, line);
    }
}

static void look_at_nodes(const char *sys, object_kind *kind)
{
    char folder[LONGEST_PATH], list[LONGEST_LIST], name[LONGEST_PATH];
    snprintf(folder, sizeof folder, "%s/devices/system/node", sys);
    DIR *nodes = opendir(folder);
    for (int n = 0; nodes && n < MOST_PROCESSORS; n++) {
        snprintf(name, sizeof name, "node%d/cpulist", n);
        if (read_line(folder, name, list) == 0)
            add_object(kind, list);
    }
    if (nodes)
        closedir(nodes);
}

/* The text of a JSON array, the smallest objects first; to be freed. NULL where memory ran out. */
static char *find_topology(const char *sys)
{
    static const char *const caches[] = {"L1 cache", "L2 cache", "L3 cache", "L4 cache"};
    growing all = {0};
    object_kind kind = {0};
    add(&all, "[");
    for_each_processor(sys, look_at_core, &kind, 0);
    end_kind(&all, "core", &kind);
    for (int level = 1; level <= (int)(sizeof caches / sizeof *caches); level++) {
        for_each_processor(sys, look_at_cache, &kind, level);
        end_kind(&all, caches[level - 1], &kind);
    }
    look_at_nodes(sys, &kind);
    end_kind(&all, "NUMA node", &kind);
    for_each_processor(sys, look_at_package, &kind, 0);
    end_kind(&all, "package", &kind);
    add(&all, "]");
    if (all.failed)
        free(all.text);
    return all.failed ? NULL : all.text;
}

static void print_topology(const char *host, const char *objects)
{
    fputs("{\"record\":\"result\",\"operation\":\"topology\",\"host\":", stdout);
    print_string(stdout, host);
    printf(",\"objects\":%s}\n", objects);
}

/* Rank 0 hears of the other hosts one after the other, and prints what differs from the host before. */
static long hear_of_hosts(MPI_Comm leaders, char *own, const char *host)
{
    int rank, hosts, length = own ? (int)strlen(own) : -1;
    char name[LARGEST_HOST_NAME] = "";
    MPI_Comm_rank(leaders, &rank);
    MPI_Comm_size(leaders, &hosts);
    snprintf(name, sizeof name, "%s", host);
    if (rank != 0) {
        MPI_Send(&length, 1, MPI_INT, 0, TAG_TEXT, leaders);
        if (own)
            MPI_Send(own, length + 1, MPI_CHAR, 0, TAG_TEXT, leaders);
        MPI_Send(name, (int)sizeof name, MPI_CHAR, 0, TAG_TEXT, leaders);
        return 0;
    }
    if (!own)
        return -1;
    long printed = 1;
    char *before = own;
    print_topology(name, own);
    for (int other = 1; other < hosts && printed > 0; other++) {
        MPI_Recv(&length, 1, MPI_INT, other, TAG_TEXT, leaders, MPI_STATUS_IGNORE);
        char *text = length < 0 ? NULL : malloc((size_t)length + 1);
        if (!text) {
            printed = -1;
            break;
        }
        MPI_Recv(text, length + 1, MPI_CHAR, other, TAG_TEXT, leaders, MPI_STATUS_IGNORE);
        MPI_Recv(name, (int)sizeof name, MPI_CHAR, other, TAG_TEXT, leaders, MPI_STATUS_IGNORE);
        if (strcmp(text, before) != 0) {
            print_topology(name, text);
            printed++;
        }
        if (before != own)
            free(before);
        before = text;
    }
    if (before != own)
        free(before);
    return printed;
}

long print_topologies(const char *sys, const ranks_alike *of_host)
{
    long printed = 0;
    if (of_host->leaders != MPI_COMM_NULL) {
        rank_place here;
        find_place(&here);
        char *own = find_topology(sys);
        printed = hear_of_hosts(of_host->leaders, own, here.host);
        free(own);
    }
    MPI_Bcast(&printed, 1, MPI_LONG, 0, MPI_COMM_WORLD);
    return printed;
}
