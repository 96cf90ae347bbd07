#define _GNU_SOURCE /* program_invocation_short_name */
#define WYEAST_PROFILE_NAMES
#include "profile_records.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "../common/record_pieces.h"

static const char *const kind_names[KIND_COUNT] = {"message", "collective", "one-sided"};
static const char *const direction_names[DIRECTION_COUNT] = {"sent", "received"};

static void print_call(FILE *out, int rank, call_id call, const call_counters *counted)
{
    fprintf(out,
            "{\"record\":\"profile\",\"rank\":%d,\"function\":\"%s\",\"calls\":%" PRIu64
            ",\"time_s\":%.9e,\"sent_messages\":%" PRIu64 ",\"sent_bytes\":%" PRIu64
            ",\"received_messages\":%" PRIu64 ",\"received_bytes\":%" PRIu64 "}\n",
            rank, call_names[call], counted->calls, (double)counted->nanoseconds * 1e-9,
            counted->messages, counted->bytes, counted->received_messages,
            counted->received_bytes);
}

static void print_sizes(FILE *out, int rank, call_id call, const call_counters *counted)
{
    const char *separator = "";
    fprintf(out, "{\"record\":\"profile_messages\",\"rank\":%d,\"function\":\"%s\","
                 "\"at_least_bytes\":[",
            rank, call_names[call]);
    for (size_t bin = 0; bin < SIZE_BINS; bin++)
        if (counted->by_size[bin]) {
            fprintf(out, "%s%" PRIu64, separator, bin ? (uint64_t)1 << (bin - 1) : 0);
            separator = ",";
        }
    separator = "";
    fputs("],\"messages\":[", out);
    for (size_t bin = 0; bin < SIZE_BINS; bin++)
        if (counted->by_size[bin]) {
            fprintf(out, "%s%" PRIu64, separator, counted->by_size[bin]);
            separator = ",";
        }
    fputs("]}\n", out);
}

static size_t print_flows(FILE *out, const rank_span *span, counters *sum,
                          flow_direction direction, flow_kind kind)
{
    size_t records = 0;
    for (int place = 0; place < (int)sum->peers; place++) {
        const flow *one = flow_of(sum, direction, kind, place);
        const int peer = span->names ? span->names[place] : place;
        if (!one->messages)
            continue;
        fprintf(out,
                "{\"record\":\"profile_matrix\",\"kind\":\"%s\",\"from\":%d,\"to\":%d,"
                "\"counted\":\"%s\",\"messages\":%" PRIu64 ",\"bytes\":%" PRIu64 "}\n",
                kind_names[kind], direction == SENT_TO ? span->rank : peer,
                direction == SENT_TO ? peer : span->rank, direction_names[direction],
                one->messages, one->bytes);
        records++;
    }
    return records;
}

size_t print_profile_records(FILE *out, const rank_span *span, counters *sum,
                             uint64_t receives_never_completed)
{
    uint64_t unseen = receives_never_completed + (sum ? sum->unseen_receives : 0);
    fprintf(out,
            "{\"record\":\"profile_rank\",\"rank\":%d,\"wall_s\":%.9e,\"user_s\":%.9e,"
            "\"system_s\":%.9e,\"threads\":%zu,\"unseen_receives\":%" PRIu64
            ",\"outside_messages\":%" PRIu64,
            span->rank, span->wall, span->user, span->system, span->threads, unseen,
            sum ? sum->outside_of_world : 0);
    if (span->names)
        fprintf(out, ",\"ranks\":%d,\"longest_wall_s\":%.9e", span->of_ranks, span->longest_wall);
    fputs("}\n", out);
    size_t records = 1;
    if (!sum)
        return records;
    for (call_id call = 0; call < CALL_COUNT; call++) {
        if (!sum->calls[call].calls)
            continue;
        print_call(out, span->rank, call, &sum->calls[call]);
        records++;
        if (sum->calls[call].messages) {
            print_sizes(out, span->rank, call, &sum->calls[call]);
            records++;
        }
    }
    for (flow_kind kind = 0; kind < KIND_COUNT; kind++)
        for (flow_direction direction = 0; direction < DIRECTION_COUNT; direction++)
            records += print_flows(out, span, sum, direction, kind);
    return records;
}

const char *name_of_program(void)
{
    return program_invocation_short_name;
}

char *arguments_of_program(void)
{
    char *text = NULL, *word = NULL;
    size_t length = 0, room = 0;
    FILE *out = open_memstream(&text, &length);
    if (!out)
        return NULL;
    fputs("{\"arguments\":[", out);
    FILE *words = fopen("/proc/self/cmdline", "r");
    if (words) {
        for (size_t i = 0; getdelim(&word, &room, '\0', words) > 0; i++) {
            if (i)
                fputs(i > 1 ? "," : "", out), print_string(out, word);
        }
        fclose(words);
    }
    free(word);
    fputs("]}", out);
    if (fclose(out) != 0) {
        free(text);
        return NULL;
    }
    return text;
}
