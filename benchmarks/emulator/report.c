#include "report.h"

#include <stdio.h>
#include <stdlib.h>

#include "../common/records.h"
#include "../common/summary.h"

/* What is reported of one application, and where its numbers are. */
typedef struct {
    size_t number;
    const application *application;
    const emulation_plan *plan;
    const emulation *measured;
    double *derived, *scratch; /* By iteration. */
} subject;

static const double *times_of(const subject *s, time_kind kind)
{
    const size_t iterations = (size_t)s->plan->iterations;
    return s->measured->times + (s->number * TIMES + kind) * iterations;
}

static double value_of(const subject *s, int rank, value_kind kind)
{
    return s->measured->values[(size_t)s->application->world_ranks[rank] * VALUES + kind];
}

static unsigned long long bytes_of(const subject *s, int rank, byte_kind kind)
{
    return s->measured->bytes[(size_t)s->application->world_ranks[rank] * BYTES + kind];
}

static double sum_of_values(const subject *s, value_kind kind)
{
    double sum = 0.0;
    for (int rank = 0; rank < s->application->graph.ranks; rank++)
        sum += value_of(s, rank, kind);
    return sum;
}

static unsigned long long sum_of_bytes(const subject *s, byte_kind kind)
{
    unsigned long long sum = 0;
    for (int rank = 0; rank < s->application->graph.ranks; rank++)
        sum += bytes_of(s, rank, kind);
    return sum;
}

static time_summary summary_of(const subject *s, const double *values)
{
    return summarise(values, (size_t)s->plan->iterations, s->scratch);
}

static void print_times(const char *key, const double *times, long long count)
{
    printf(",\"%s\":[", key);
    for (long long i = 0; i < count; i++) {
        fputs(i ? "," : "", stdout);
        print_seconds(stdout, times[i]);
    }
    fputc(']', stdout);
}

static void print_values(const subject *s, const char *key, value_kind kind)
{
    printf(",\"%s\":[", key);
    for (int rank = 0; rank < s->application->graph.ranks; rank++) {
        fputs(rank ? "," : "", stdout);
        print_seconds(stdout, value_of(s, rank, kind));
    }
    fputc(']', stdout);
}

static void print_bytes(const subject *s, const char *key, byte_kind kind)
{
    printf(",\"%s\":[", key);
    for (int rank = 0; rank < s->application->graph.ranks; rank++)
        printf("%s%llu", rank ? "," : "", bytes_of(s, rank, kind));
    fputc(']', stdout);
}

static void print_summary_of(const char *key, const time_summary *summary)
{
    printf(",\"%s\":", key);
    print_summary(stdout, summary);
}

static void print_number(const char *key, double number)
{
    printf(",\"%s\":%.9e", key, number);
}

static double between_0_and_1(double number)
{
    return number < 0.0 ? 0.0 : number > 1.0 ? 1.0 : number;
}

static void print_key(const subject *s, const char *record)
{
    printf("{\"record\":\"%s\",\"operation\":\"emulation\",\"application\":%zu,\"graph\":", record,
           s->number);
    print_string(stdout, s->application->text);
}

static void print_iterations(const subject *s)
{
    static const char *const situations[TIMES] = {"alone", "together", "messages", "computing"};
    for (time_kind kind = TIME_ALONE; kind < TIMES; kind++) {
        print_key(s, "iterations");
        printf(",\"situation\":\"%s\"", situations[kind]);
        print_times("time_s", times_of(s, kind), s->plan->iterations);
        fputs("}\n", stdout);
    }
}

static void print_result(const subject *s)
{
    const graph *graph = &s->application->graph;
    for (long long i = 0; i < s->plan->iterations; i++)
        s->derived[i] = times_of(s, TIME_TOGETHER)[i] / times_of(s, TIME_ALONE)[i];
    const time_summary slowdown = summary_of(s, s->derived);
    /* What of the communication computing does not hide, each iteration against itself. */
    for (long long i = 0; i < s->plan->iterations; i++)
        s->derived[i] = times_of(s, TIME_ALONE)[i] - times_of(s, TIME_COMPUTING)[i];
    const double exposed = summary_of(s, s->derived).median;
    const time_summary alone = summary_of(s, times_of(s, TIME_ALONE));
    const time_summary together = summary_of(s, times_of(s, TIME_TOGETHER));
    const time_summary messages = summary_of(s, times_of(s, TIME_MESSAGES));
    const time_summary computing = summary_of(s, times_of(s, TIME_COMPUTING));
    print_key(s, "result");
    printf(",\"ranks\":%d,\"world_ranks\":[", graph->ranks);
    for (int rank = 0; rank < graph->ranks; rank++)
        printf("%s%d", rank ? "," : "", s->application->world_ranks[rank]);
    printf("],\"edges\":%zu,\"step_bytes\":%llu,\"steps\":%lld,\"iterations\":%lld,"
           "\"warmup\":%lld", graph->edge_count, step_bytes(graph), s->plan->steps,
           s->plan->iterations, s->plan->warmup);
    print_summary_of("alone_s", &alone);
    print_summary_of("together_s", &together);
    print_summary_of("messages_s", &messages);
    print_summary_of("computing_s", &computing);
    print_summary_of("slowdown", &slowdown);
    print_number("overlap", between_0_and_1(1.0 - exposed / messages.median));
    print_number("communication_fraction_alone",
                 between_0_and_1(sum_of_values(s, COMMUNICATING_ALONE) /
                                 sum_of_values(s, SUM_ALONE)));
    print_number("communication_fraction_together",
                 between_0_and_1(sum_of_values(s, COMMUNICATING_TOGETHER) /
                                 sum_of_values(s, SUM_TOGETHER)));
    print_values(s, "median_by_rank_alone_s", MEDIAN_ALONE);
    print_values(s, "median_by_rank_together_s", MEDIAN_TOGETHER);
    print_values(s, "drawn_by_rank_s", MEAN_DRAWN);
    print_bytes(s, "sent_by_rank_bytes", BYTES_SENT);
    print_bytes(s, "received_by_rank_bytes", BYTES_RECEIVED);
    printf(",\"verified_bytes\":%llu}\n", sum_of_bytes(s, BYTES_VERIFIED));
}

/* Each rank has compared what it received with the graph; this compares the sums. */
static int check_conservation(const subject *s, complaint *about)
{
    const unsigned long long sent = sum_of_bytes(s, BYTES_SENT);
    const unsigned long long received = sum_of_bytes(s, BYTES_RECEIVED);
    const unsigned long long verified = sum_of_bytes(s, BYTES_VERIFIED);
    if (sent != received)
        return complain(about, "application %zu: %llu bytes were sent and %llu received", s->number,
                        sent, received);
    if (verified != step_bytes(&s->application->graph))
        return complain(about, "application %zu: a step has %llu bytes, and %llu were verified",
                        s->number, step_bytes(&s->application->graph), verified);
    return 0;
}

int report_emulation(const application_list *list, const emulation_plan *plan,
                     const emulation *measured, int raw, complaint *about)
{
    const size_t iterations = (size_t)plan->iterations;
    double *derived = calloc(iterations, sizeof *derived);
    double *scratch = calloc(iterations, sizeof *scratch);
    int status = -1;
    if (!derived || !scratch) {
        complain(about, "no memory for the order statistics");
        goto out;
    }
    for (size_t a = 0; a < list->count; a++) {
        const subject s = {a, &list->all[a], plan, measured, derived, scratch};
        if (check_conservation(&s, about))
            goto out;
        print_result(&s);
        if (raw)
            print_iterations(&s);
    }
    status = 0;
out:
    free(derived);
    free(scratch);
    return status;
}
