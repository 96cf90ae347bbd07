#include "placement.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "written.h"

#define PROCESSORS "/sys/devices/system/cpu"
#define NODES "/sys/devices/system/node"
#define LONGEST_PATH 128
/* Some numbers of processors, as the kernel lists them: `0-3,8`. */
#define LONGEST_LIST 4096

static int has(const unsigned char *bits, size_t number)
{
    return bits[number / 8] >> number % 8 & 1;
}

static void set(unsigned char *bits, size_t number)
{
    bits[number / 8] |= (unsigned char)(1u << number % 8);
}

/* Returns 0, or -1 where there is no such file. */
static int read_line(const char *path, char *line, size_t size)
{
    FILE *file = fopen(path, "r");
    if (!file)
        return -1;
    const char *found = fgets(line, (int)size, file);
    fclose(file);
    return found ? 0 : -1;
}

/* Set the bits of a list's numbers; returns its first number, or -1 of an empty one. */
static long read_list(const char *list, unsigned char *bits, size_t most)
{
    long first = -1;
    for (const char *at = list; *at >= '0' && *at <= '9';) {
        char *end;
        const unsigned long low = strtoul(at, &end, 10);
        const unsigned long high = *end == '-' ? strtoul(end + 1, &end, 10) : low;
        if (first < 0)
            first = (long)low;
        for (unsigned long number = low; number <= high && number < most; number++)
            set(bits, number);
        at = *end == ',' ? end + 1 : end;
    }
    return first;
}

static void find_core(rank_end *here, size_t processor)
{
    char path[LONGEST_PATH], line[LONGEST_LIST];
    unsigned char siblings[MOST_PROCESSORS / 8] = {0};
    snprintf(path, sizeof path, PROCESSORS "/cpu%zu/topology/thread_siblings_list", processor);
    if (read_line(path, line, sizeof line) == 0) {
        const long first = read_list(line, siblings, MOST_PROCESSORS);
        if (first >= 0 && first < MOST_PROCESSORS)
            set(here->cores, (size_t)first);
    }
    snprintf(path, sizeof path, PROCESSORS "/cpu%zu/topology/physical_package_id", processor);
    if (read_line(path, line, sizeof line) == 0) {
        const long socket = strtol(line, NULL, 10);
        if (socket >= 0 && socket < MOST_SOCKETS)
            set(here->sockets, (size_t)socket);
    }
}

static void find_numa_nodes(rank_end *here)
{
    DIR *folder = opendir(NODES);
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        char path[sizeof NODES + sizeof entry->d_name + sizeof "//cpulist"], line[LONGEST_LIST];
        unsigned char own[MOST_PROCESSORS / 8] = {0};
        char *end;
        if (strncmp(entry->d_name, "node", 4) != 0)
            continue;
        const unsigned long number = strtoul(entry->d_name + 4, &end, 10);
        snprintf(path, sizeof path, NODES "/%s/cpulist", entry->d_name);
        if (end == entry->d_name + 4 || *end || number >= MOST_NUMA_NODES ||
            read_line(path, line, sizeof line))
            continue;
        read_list(line, own, MOST_PROCESSORS);
        for (size_t i = 0; i < sizeof own; i++)
            if (own[i] & here->place.processors[i])
                set(here->numa_nodes, number);
    }
    if (folder)
        closedir(folder);
}

void find_end(rank_end *here)
{
    memset(here, 0, sizeof *here);
    here->waiting = own_waiting();
    find_place(&here->place);
    for (size_t processor = 0; processor < MOST_PROCESSORS; processor++)
        if (has(here->place.processors, processor))
            find_core(here, processor);
    find_numa_nodes(here);
}

/* How many ranks in a row, from one on, have these bytes as that one does. */
static size_t alike(const rank_end *from, size_t left, size_t offset, size_t bytes)
{
    size_t ranks = 1;
    while (ranks < left && memcmp((const char *)(from + ranks) + offset,
                                  (const char *)from + offset, bytes) == 0)
        ranks++;
    return ranks;
}

/* What a rank may run on, of one kind: with those that ranks in a row have alike said once. */
static void print_bits_of_ranks(FILE *out, const char *name, rank_ends all, size_t offset,
                                size_t bytes)
{
    fprintf(out, ",\"%s\":[", name);
    for (size_t i = 0, ranks; i < all.ranks; i += ranks) {
        ranks = alike(all.of + i, all.ranks - i, offset, bytes);
        fputs(i ? ",[" : "[", out);
        print_ranges(out, (const unsigned char *)(all.of + i) + offset, 8 * bytes);
        fprintf(out, ",%zu]", ranks);
    }
    fputc(']', out);
}

static void print_hosts_of_ranks(FILE *out, rank_ends all)
{
    fputs("\"hosts\":[", out);
    for (size_t i = 0, ranks; i < all.ranks; i += ranks) {
        ranks = alike(all.of + i, all.ranks - i, offsetof(rank_end, place.host),
                      sizeof all.of->place.host);
        fputs(i ? ",[" : "[", out);
        print_string(out, all.of[i].place.host);
        fprintf(out, ",%zu]", ranks);
    }
    fputc(']', out);
}

static void print_waiting(FILE *out, rank_ends all)
{
    size_t longest = 0;
    double most = 0.0;
    for (size_t rank = 0; rank < all.ranks; rank++) {
        if (all.of[rank].waiting.counted_s < 0)
            return;
        if (wait_of_message(&all.of[rank].waiting) > wait_of_message(&all.of[longest].waiting))
            longest = rank;
        if (waited_share(&all.of[rank].waiting) > most)
            most = waited_share(&all.of[rank].waiting);
    }
    const processor_wait *of = &all.of[longest].waiting;
    fprintf(out, ",\"waiting\":{\"rank\":%zu,\"counted_s\":", longest);
    print_seconds(out, of->counted_s);
    fputs(",\"waited_s\":", out);
    print_seconds(out, of->waited_s);
    fprintf(out, ",\"turns\":%.0f,\"most_share\":%.9e}", of->turns, most);
}

void print_ends(FILE *out, rank_ends all)
{
    if (!all.of)
        return;
    fputs(",\"placement\":{", out);
    print_hosts_of_ranks(out, all);
    print_bits_of_ranks(out, "processors", all, offsetof(rank_end, place.processors),
                        sizeof all.of->place.processors);
    print_bits_of_ranks(out, "cores", all, offsetof(rank_end, cores), sizeof all.of->cores);
    print_bits_of_ranks(out, "sockets", all, offsetof(rank_end, sockets), sizeof all.of->sockets);
    print_bits_of_ranks(out, "numa_nodes", all, offsetof(rank_end, numa_nodes),
                        sizeof all.of->numa_nodes);
    fputc('}', out);
    print_waiting(out, all);
}

const char *print_end_of(FILE *out, size_t results, disturbances counted, rank_ends all)
{
    fprintf(out, "{\"record\":\"end\",\"results\":%zu,\"stopped\":%ld", results, counted.stopped);
    if (counted.carriers >= 0)
        fprintf(out, ",\"carriers\":%ld", counted.carriers);
    print_ends(out, all);
    fputs("}\n", out);
    return why_unwritten(out);
}

void print_disturbances(FILE *out, disturbances counted, rank_ends all)
{
    fprintf(out, "{\"record\":\"disturbances\",\"stopped\":%ld,\"carriers\":%ld", counted.stopped,
            counted.carriers);
    print_ends(out, all);
    fputs("}\n", out);
}
