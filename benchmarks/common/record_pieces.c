#define _GNU_SOURCE /* sched_getaffinity */
#include "record_pieces.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "written.h"

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

void print_seconds_of_each(FILE *out, const double *times, size_t count)
{
    fputc('[', out);
    for (size_t i = 0; i < count; i++) {
        fputs(i ? "," : "", out);
        print_seconds(out, times[i]);
    }
    fputc(']', out);
}

void print_summary(FILE *out, const time_summary *summary)
{
    fprintf(out,
            "{\"min\":%.9e,\"quartile1\":%.9e,\"median\":%.9e,\"mean\":%.9e,"
            "\"quartile3\":%.9e,\"max\":%.9e}",
            summary->min, summary->quartile1, summary->median, summary->mean, summary->quartile3,
            summary->max);
}

int print_seconds_of_ranks(FILE *out, const double *times, size_t ranks)
{
    if (ranks <= MOST_RANKS_LISTED) {
        print_seconds_of_each(out, times, ranks);
        return 0;
    }
    double *scratch = calloc(ranks, sizeof *scratch);
    if (!scratch)
        return -1;
    const time_summary summary = summarise(times, ranks, scratch);
    free(scratch);
    print_summary(out, &summary);
    return 0;
}

void find_place(rank_place *here)
{
    memset(here, 0, sizeof *here);
    if (gethostname(here->host, sizeof here->host - 1) != 0)
        snprintf(here->host, sizeof here->host, "unknown");
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return;
    for (size_t processor = 0; processor < MOST_PROCESSORS && processor < CPU_SETSIZE; processor++)
        if (CPU_ISSET(processor, &set))
            here->processors[processor / 8] |= (unsigned char)(1u << processor % 8);
}

static int is_in(const unsigned char *bits, size_t most, size_t number)
{
    return number < most && bits[number / 8] >> number % 8 & 1;
}

static void print_processors(FILE *out, const rank_place *where)
{
    const char *separator = "";
    fputc('[', out);
    for (size_t processor = 0; processor < MOST_PROCESSORS; processor++)
        if (is_in(where->processors, MOST_PROCESSORS, processor)) {
            fprintf(out, "%s%zu", separator, processor);
            separator = ",";
        }
    fputc(']', out);
}

void print_ranges(FILE *out, const unsigned char *bits, size_t most)
{
    const char *separator = "";
    fputc('"', out);
    for (size_t first = 0, next; first < most; first = next) {
        next = first + 1;
        if (!is_in(bits, most, first))
            continue;
        while (is_in(bits, most, next))
            next++;
        fprintf(out, "%s%zu", separator, first);
        if (next > first + 1)
            fprintf(out, "-%zu", next - 1);
        separator = ",";
    }
    fputc('"', out);
}

/* How many ranks in a row, from one on, have the host, or the processors, of that one. */
static size_t hosts_alike(const rank_place *places, size_t left)
{
    size_t ranks = 1;
    while (ranks < left && strcmp(places[ranks].host, places->host) == 0)
        ranks++;
    return ranks;
}

static size_t processors_alike(const rank_place *places, size_t left)
{
    size_t ranks = 1;
    while (ranks < left && memcmp(places[ranks].processors, places->processors,
                                  sizeof places->processors) == 0)
        ranks++;
    return ranks;
}

static void print_hosts(FILE *out, const rank_place *places, size_t ranks)
{
    const int in_runs = ranks > MOST_RANKS_LISTED;
    for (size_t i = 0, alike; i < ranks; i += alike) {
        alike = in_runs ? hosts_alike(places + i, ranks - i) : 1;
        fputs(i ? "," : "", out);
        fputs(in_runs ? "[" : "", out);
        print_string(out, places[i].host);
        if (in_runs)
            fprintf(out, ",%zu]", alike);
    }
}

static void print_processors_of_ranks(FILE *out, const rank_place *places, size_t ranks)
{
    const int in_runs = ranks > MOST_RANKS_LISTED;
    for (size_t i = 0, alike; i < ranks; i += alike) {
        alike = in_runs ? processors_alike(places + i, ranks - i) : 1;
        fputs(i ? "," : "", out);
        if (!in_runs) {
            print_processors(out, &places[i]);
            continue;
        }
        fputs("[", out);
        print_ranges(out, places[i].processors, MOST_PROCESSORS);
        fprintf(out, ",%zu]", alike);
    }
}

void print_header_record(FILE *out, const header_facts *facts)
{
    char started[32];
    time_t now = time(NULL);
    struct tm utc;
    if (!gmtime_r(&now, &utc) || !strftime(started, sizeof started, "%FT%TZ", &utc))
        snprintf(started, sizeof started, "unknown");
    fprintf(out, "{\"record\":\"header\",\"format\":\"%s\",\"program\":", facts->format);
    print_string(out, facts->program);
    fprintf(out, ",\"program_version\":\"%s\",\"library\":", PROGRAM_VERSION);
    print_string(out, facts->library);
    fprintf(out, ",\"mpi_standard\":\"%s\",\"ranks\":%zu,\"hosts\":[", facts->mpi_standard,
            facts->ranks);
    print_hosts(out, facts->places, facts->ranks);
    fputs("],\"processors\":[", out);
    print_processors_of_ranks(out, facts->places, facts->ranks);
    fprintf(out, "],\"clock\":\"%s\",\"clock_tick_s\":%.9e,\"clock_resolution_s\":%.9e,"
                 "\"started_utc\":\"%s\"",
            facts->clock, facts->clock_tick, facts->clock_resolution, started);
    if (facts->mpi_wtime)
        fprintf(out, ",\"mpi_wtime\":%s", facts->mpi_wtime);
    fprintf(out, ",\"parameters\":%s}\n", facts->parameters);
}

const char *print_end(FILE *out, size_t results)
{
    fprintf(out, "{\"record\":\"end\",\"results\":%zu}\n", results);
    return why_unwritten(out);
}
