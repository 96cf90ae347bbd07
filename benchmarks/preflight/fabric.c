#include "fabric.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../common/record_pieces.h"
#include "single_copies.h"

#define TAG 2
/* A device that carried less than this share of what was exchanged is not told. */
#define TOLD_SHARE 100

/* One rank of each host looks: counters are the host's. */
static void look_at_devices(const char *sys, device_counts *counted, const ranks_alike *of_host)
{
    MPI_Barrier(MPI_COMM_WORLD);
    if (of_host->leaders != MPI_COMM_NULL) {
        await_counters(sys);
        count_devices(sys, counted);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

void begin_fabric(fabric_look *look, const char *sys, const ranks_alike *of_host)
{
    look->sys = sys;
    look->counted.count = 0;
    look_at_devices(sys, &look->counted, of_host);
    look->copied = bytes_by_cma();
}

/* A host's record as a line, to be freed; NULL where memory ran out. */
static char *host_line(const fabric_look *look, const device_counts *now,
                       const known_volume *volume, const unsigned long long of_ranks[3])
{
    char host[LARGEST_HOST_NAME] = "", *line = NULL;
    size_t length = 0;
    if (gethostname(host, sizeof host - 1) != 0)
        snprintf(host, sizeof host, "unknown");
    FILE *out = open_memstream(&line, &length);
    if (!out)
        return NULL;
    const unsigned long long all = volume->between + volume->within, least = all / TOLD_SHARE;
    fputs("{\"record\":\"result\",\"operation\":\"fabric\",\"host\":", out);
    print_string(out, host);
    fprintf(out,
            ",\"ranks\":%llu,\"between_bytes\":%llu,\"within_bytes\":%llu,\"cma_bytes\":%llu,"
            "\"xpmem_ranks\":%llu,\"counted_devices\":%zu,\"devices\":",
            of_ranks[0], volume->between, volume->within, of_ranks[1], of_ranks[2], now->count);
    /* Where nothing was exchanged, what passed is nobody's. */
    device_counts told = *now;
    subtract_devices(&told, &look->counted);
    print_devices(out, look->sys, &told, all ? (least ? least : 1) : ULLONG_MAX);
    fputs("}\n", out);
    if (fclose(out) != 0 || length > INT_MAX) {
        free(line);
        return NULL;
    }
    return line;
}

/* Print the lines of all hosts, each on request, so that rank 0 has one at a time. Returns how many, or
 * -1 where memory ran out. Collective over the leaders. */
static long print_lines(MPI_Comm leaders, const char *own)
{
    int leader, hosts;
    MPI_Comm_rank(leaders, &leader);
    MPI_Comm_size(leaders, &hosts);
    if (leader) {
        int length = (int)strlen(own) + 1;
        MPI_Recv(NULL, 0, MPI_BYTE, 0, TAG, leaders, MPI_STATUS_IGNORE);
        MPI_Send(&length, 1, MPI_INT, 0, TAG, leaders);
        MPI_Send(own, length, MPI_CHAR, 0, TAG, leaders);
        return 0;
    }
    fputs(own, stdout);
    for (int other = 1; other < hosts; other++) {
        int length = 0;
        MPI_Send(NULL, 0, MPI_BYTE, other, TAG, leaders);
        MPI_Recv(&length, 1, MPI_INT, other, TAG, leaders, MPI_STATUS_IGNORE);
        char *line = malloc((size_t)length);
        if (!line)
            return -1;
        MPI_Recv(line, length, MPI_CHAR, other, TAG, leaders, MPI_STATUS_IGNORE);
        fputs(line, stdout);
        free(line);
    }
    return hosts;
}

long end_fabric(fabric_look *look, const known_volume *volume, const ranks_alike *of_host)
{
    unsigned long long own[3] = {1, bytes_by_cma() - look->copied,
                                 (unsigned long long)has_xpmem_open()};
    unsigned long long of_ranks[3] = {0, 0, 0};
    device_counts now = {.count = 0};
    look_at_devices(look->sys, &now, of_host);
    MPI_Reduce(own, of_ranks, 3, MPI_UNSIGNED_LONG_LONG, MPI_SUM, 0, of_host->sharing);
    if (of_host->leaders == MPI_COMM_NULL)
        return 0;
    char *line = host_line(look, &now, volume, of_ranks);
    const long lines = line ? print_lines(of_host->leaders, line) : -1;
    free(line);
    return lines;
}
