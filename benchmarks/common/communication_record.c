#include "communication.h"

#include <stdlib.h>

#include "record_pieces.h"

static void print_key(FILE *out, const char *record, const communication *about)
{
    fprintf(out, "{\"record\":\"%s\",\"operation\":\"%s\",\"method\":", record, about->operation);
    print_string(out, about->method);
    fputs(",\"group\":", out);
    print_string(out, about->group);
    fprintf(out, ",\"message_bytes\":%zu", about->message_bytes);
}

int print_communication(FILE *out, const sampling *plan, const communication *about,
                        const samples *taken, size_t ranks, unsigned long long moved,
                        unsigned long long verified)
{
    double *scratch = calloc(taken->count, sizeof *scratch);
    if (!scratch)
        return -1;
    time_summary summary = summarise(taken->times, taken->count, scratch);
    free(scratch);
    print_key(out, "result", about);
    fprintf(out,
            ",\"ranks\":%d,\"iterations\":%zu,\"warmup\":%lld,\"synchronisation\":\"%s\","
            "\"discarded\":%zu,\"clock_error_s\":",
            about->ranks, taken->count, plan->warmup, plan->synchronisation, taken->discarded);
    print_seconds(out, taken->clock_error);
    fputs(",\"time_s\":", out);
    print_summary(out, &summary);
    fputs(",\"median_by_rank_s\":", out);
    if (print_seconds_of_ranks(out, taken->median_by_rank, ranks))
        return -1;
    fprintf(out, ",\"moved_bytes\":%llu,\"verified_bytes\":%llu}\n", moved, verified);
    if (plan->raw || plan->raw_by_rank) {
        print_key(out, "iterations", about);
        fputs(",\"time_s\":", out);
        print_seconds_of_each(out, taken->times, taken->count);
        fputs("}\n", out);
    }
    return 0;
}

void print_iterations_of_rank(FILE *out, const communication *about, int rank, const double *times,
                              size_t count)
{
    print_key(out, "rank_iterations", about);
    fprintf(out, ",\"rank\":%d,\"time_s\":", rank);
    print_seconds_of_each(out, times, count);
    fputs("}\n", out);
}
