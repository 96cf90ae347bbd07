/* Graphs that a user wrote: benchmarks/FORMAT.md describes the lines. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "graph.h"

#define LONGEST_LINE 200
#define LONGEST_NAME 200
#define LONGEST_MEAN 3600.0
#define MOST_WORDS 5

/* Where the parser is, and what it has to say it with. */
typedef struct {
    const char *name;
    size_t line;
    graph *graph;
    unsigned char *mean_given; /* By rank. */
    complaint *about;
} position;

static int refuse_line(const position *at, const char *sentence)
{
    return complain(at->about, "%.*s:%zu: %s", LONGEST_NAME, at->name, at->line, sentence);
}

static int parse_whole(const position *at, const char *what, const char *word, long long least,
                       long long most, long long *number)
{
    complaint prefixed;
    complain(&prefixed, "%.*s:%zu: %s", LONGEST_NAME, at->name, at->line, what);
    return parse_number(prefixed.text, word, least, most, number, at->about);
}

static int parse_seconds(const position *at, const char *word, double *seconds)
{
    complaint prefixed;
    *seconds = 0.0;
    if (strcmp(word, "0") == 0)
        return 0;
    complain(&prefixed, "%.*s:%zu: seconds", LONGEST_NAME, at->name, at->line);
    return parse_fraction(prefixed.text, word, 0.0, LONGEST_MEAN, seconds, at->about);
}

static int parse_ranks(position *at, char *const *words, size_t count)
{
    long long ranks;
    if (count != 2)
        return refuse_line(at, "write: ranks NUMBER");
    if (at->graph->ranks)
        return refuse_line(at, "ranks is given for the second time");
    if (parse_whole(at, "ranks", words[1], 2, MOST_GRAPH_RANKS, &ranks))
        return -1;
    at->mean_given = calloc((size_t)ranks, 1);
    if (!at->mean_given)
        return refuse_line(at, "no memory for this many ranks");
    /* The other ranks' means are known to the caller only. */
    return reserve_ranks(at->graph, (int)ranks, -1.0, at->about);
}

static int parse_compute(position *at, char *const *words, size_t count)
{
    long long rank;
    double seconds;
    if (count != 3)
        return refuse_line(at, "write: compute RANK SECONDS");
    if (parse_whole(at, "rank", words[1], 0, at->graph->ranks - 1, &rank) ||
        parse_seconds(at, words[2], &seconds))
        return -1;
    if (at->mean_given[rank])
        return refuse_line(at, "an earlier line has this rank's computing time");
    at->mean_given[rank] = 1;
    at->graph->compute_mean[rank] = seconds;
    return 0;
}

static int parse_edge(position *at, char *const *words, size_t count)
{
    long long from, to, bytes;
    const long long last = at->graph->ranks - 1;
    if (count != 4)
        return refuse_line(at, "write: edge FROM TO BYTES");
    if (parse_whole(at, "rank", words[1], 0, last, &from) ||
        parse_whole(at, "rank", words[2], 0, last, &to) ||
        parse_whole(at, "bytes", words[3], 0, INT_MAX, &bytes))
        return -1;
    if (from == to)
        return refuse_line(at, "an edge from a rank to itself");
    if (at->graph->edge_count >= MOST_EDGES)
        return refuse_line(at, "more than 1000000 edges, the most that a graph may have");
    return add_edge(at->graph, (edge){(int)from, (int)to, (size_t)bytes, at->line}, at->about);
}

static int parse_line(position *at, char *line)
{
    char *words[MOST_WORDS], *rest = NULL;
    size_t count = 0;
    char *comment = strchr(line, '#');
    if (comment)
        *comment = '\0';
    for (char *word = strtok_r(line, " \t\r", &rest); word && count < MOST_WORDS;
         word = strtok_r(NULL, " \t\r", &rest))
        words[count++] = word;
    if (count == 0)
        return 0;
    if (strcmp(words[0], "ranks") == 0)
        return parse_ranks(at, words, count);
    const int is_edge = strcmp(words[0], "edge") == 0;
    if (!is_edge && strcmp(words[0], "compute") != 0)
        return refuse_line(at, "a line must begin with ranks, compute or edge");
    if (!at->graph->ranks)
        return refuse_line(at, "the first line must be: ranks NUMBER");
    return is_edge ? parse_edge(at, words, count) : parse_compute(at, words, count);
}

static int parse_lines(position *at, const char *text, size_t length)
{
    char line[LONGEST_LINE + 1];
    for (size_t begin = 0; begin < length;) {
        const char *end = memchr(text + begin, '\n', length - begin);
        const size_t characters = end ? (size_t)(end - text) - begin : length - begin;
        at->line++;
        if (characters > LONGEST_LINE)
            return refuse_line(at, "the line is longer than 200 characters");
        if (memchr(text + begin, '\0', characters))
            return refuse_line(at, "the line is not text");
        memcpy(line, text + begin, characters);
        line[characters] = '\0';
        if (parse_line(at, line))
            return -1;
        begin += characters + 1;
    }
    return 0;
}

/* Errors that only the whole file shows. */
static int check_whole(position *at)
{
    const graph *graph = at->graph;
    if (!at->line)
        at->line = 1;
    if (!graph->ranks)
        return refuse_line(at, "the file has no line: ranks NUMBER");
    if (!graph->edge_count)
        return refuse_line(at, "the file has no edge");
    sort_edges(at->graph);
    for (size_t e = 1; e < graph->edge_count; e++)
        if (graph->edges[e].from == graph->edges[e - 1].from &&
            graph->edges[e].to == graph->edges[e - 1].to) {
            at->line = graph->edges[e].line;
            return refuse_line(at, "an earlier line has this edge");
        }
    return 0;
}

int parse_graph(const char *name, const char *text, size_t length, double compute_mean,
                graph *parsed, complaint *about)
{
    memset(parsed, 0, sizeof *parsed);
    position at = {.name = name, .graph = parsed, .about = about};
    const int failed = parse_lines(&at, text, length) || check_whole(&at);
    for (int rank = 0; !failed && rank < parsed->ranks; rank++)
        if (!at.mean_given[rank])
            parsed->compute_mean[rank] = compute_mean;
    free(at.mean_given);
    if (failed)
        free_graph(parsed);
    return failed ? -1 : 0;
}
