#define _GNU_SOURCE /* sched_getaffinity */
#include "records.h"

#include <mpi.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LARGEST_HOST_NAME 256
#define CLOCK_READINGS 1000
#define MOST_PROCESSORS 1024

void print_string(FILE *out, const char *text)
{
    fputc('"', out);
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        if (*c == '"' || *c == '\\')
            fprintf(out, "\\%c", *c);
        else if (*c < 0x20 || *c > 0x7e)
            /* Library version strings are ASCII with line ends; anything else is shown as a byte. */
            fprintf(out, "\\u%04x", *c);
        else
            fputc(*c, out);
    }
    fputc('"', out);
}

void print_seconds(FILE *out, double seconds)
{
    fprintf(out, "%.9e", seconds);
}

void print_summary(FILE *out, const time_summary *summary)
{
    fprintf(out,
            "{\"min\":%.9e,\"quartile1\":%.9e,\"median\":%.9e,\"mean\":%.9e,"
            "\"quartile3\":%.9e,\"max\":%.9e}",
            summary->min, summary->quartile1, summary->median, summary->mean, summary->quartile3,
            summary->max);
}

/* The smallest step that MPI_Wtime was seen to make, in seconds. */
static double clock_resolution(void)
{
    double smallest = 1.0;
    for (int i = 0; i < CLOCK_READINGS; i++) {
        double before = MPI_Wtime(), after = before;
        while (after <= before)
            after = MPI_Wtime();
        if (after - before < smallest)
            smallest = after - before;
    }
    return smallest;
}

static void print_library(FILE *out)
{
#if MPI_VERSION >= 3
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;
    MPI_Get_library_version(text, &length);
    text[strcspn(text, "\n")] = '\0'; /* MPICH goes on with its configure line. */
    print_string(out, text);
#elif defined(LAM_MPI)
    /* MPI-2 has no call that names the library; LAM's header has its version. */
    char text[64];
    snprintf(text, sizeof text, "LAM/MPI %d.%d.%d", LAM_MAJOR_VERSION, LAM_MINOR_VERSION,
             LAM_RELEASE_VERSION);
    print_string(out, text);
#else
    print_string(out, "unknown library of MPI-2");
#endif
}

static void print_processors(FILE *out, const cpu_set_t *set)
{
    const char *separator = "";
    fputc('[', out);
    for (int processor = 0; processor < MOST_PROCESSORS && processor < CPU_SETSIZE; processor++)
        if (CPU_ISSET((size_t)processor, set)) {
            fprintf(out, "%s%d", separator, processor);
            separator = ",";
        }
    fputc(']', out);
}

int print_header(FILE *out, const char *program, const char *parameters)
{
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    char host[LARGEST_HOST_NAME] = "";
    if (gethostname(host, sizeof host - 1) != 0)
        snprintf(host, sizeof host, "unknown");
    cpu_set_t processors;
    CPU_ZERO(&processors);
    if (sched_getaffinity(0, sizeof processors, &processors) != 0)
        CPU_ZERO(&processors);
    char *hosts = NULL;
    cpu_set_t *sets = NULL;
    int short_of_memory = 0;
    if (rank == 0) {
        hosts = calloc((size_t)ranks, sizeof host);
        sets = calloc((size_t)ranks, sizeof *sets);
        short_of_memory = !hosts || !sets;
    }
    MPI_Bcast(&short_of_memory, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (!short_of_memory) {
        MPI_Gather(host, (int)sizeof host, MPI_CHAR, hosts, (int)sizeof host, MPI_CHAR, 0,
                   MPI_COMM_WORLD);
        MPI_Gather(&processors, (int)sizeof processors, MPI_BYTE, sets, (int)sizeof processors,
                   MPI_BYTE, 0, MPI_COMM_WORLD);
    }
    if (!short_of_memory && rank == 0) {
        int standard, substandard;
        MPI_Get_version(&standard, &substandard);
        char started[32];
        time_t now = time(NULL);
        struct tm utc;
        if (!gmtime_r(&now, &utc) || !strftime(started, sizeof started, "%FT%TZ", &utc))
            snprintf(started, sizeof started, "unknown");
        fprintf(out, "{\"record\":\"header\",\"format\":\"%s\",\"program\":\"%s\","
                     "\"program_version\":\"%s\",\"library\":",
                RECORD_FORMAT, program, PROGRAM_VERSION);
        print_library(out);
        fprintf(out, ",\"mpi_standard\":\"%d.%d\",\"ranks\":%d,\"hosts\":[", standard,
                substandard, ranks);
        for (int i = 0; i < ranks; i++) {
            fputs(i ? "," : "", out);
            print_string(out, hosts + (size_t)i * sizeof host);
        }
        fputs("],\"processors\":[", out);
        for (int i = 0; i < ranks; i++) {
            fputs(i ? "," : "", out);
            print_processors(out, &sets[i]);
        }
        fprintf(out, "],\"clock\":\"MPI_Wtime\",\"clock_tick_s\":%.9e,"
                     "\"clock_resolution_s\":%.9e,\"started_utc\":\"%s\",\"parameters\":%s}\n",
                MPI_Wtick(), clock_resolution(), started, parameters);
    }
    free(hosts);
    free(sets);
    return short_of_memory ? -1 : 0;
}

int print_end(FILE *out, size_t results)
{
    fprintf(out, "{\"record\":\"end\",\"results\":%zu}\n", results);
    return fflush(out) == 0 && !ferror(out) ? 0 : -1;
}
