/* pingpong: the time of round trips between two ranks, for each send/receive pair of Kearns 2003,
 * Table 10, and each message size. Output: benchmarks/FORMAT.md. */
#include <getopt.h>
#include <limits.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../common/arguments.h"
#include "../common/leaving.h"
#include "../common/memory_copy.h"
#include "../common/records.h"
#include "exchange.h"

#define PROGRAM "pingpong"
#define MOST_ITERATIONS 10000000LL

static const char help[] =
    "pingpong: time round trips of messages between two ranks\n"
    "\n"
    "usage: mpiexec -n 2 pingpong [options]\n"
    "\n"
    "  --pair NAME        a send/receive pair, repeatable, or `all` (default Send/Recv):\n"
    "                     Send/Recv Send/Irecv Isend/Recv Isend/Irecv\n"
    "                     Ssend/Recv Ssend/Irecv Issend/Recv Issend/Irecv\n"
    "  --order NAME       modified: the echoing rank waits for the message before it replies\n"
    "                     (default); original: it replies first, which overstates bandwidth\n"
    "                     where the receive is non-blocking (Kearns 2003, section 4.3.1)\n"
    "  --sizes RANGE      message sizes in bytes, SIZE or FIRST:LAST:STEP, repeatable\n"
    "                     (default 300:4800:300)\n"
    "  --iterations N     timed round trips for each pair and size (default 100)\n"
    "  --warmup N         untimed round trips before them (default 10)\n"
    "  --raw              print the time of every iteration as well\n"
    "  --version, --help\n"
    "\n"
    "Output is JSON Lines, in seconds and bytes; a time is that of a whole round trip. The data\n"
    "of both directions is verified in an untimed pass for each pair and size.\n"
    "\n"
    "example: mpiexec -n 2 pingpong --pair all --sizes 5000:100000:5000 --iterations 100\n";

typedef struct {
    const send_receive_pair **pairs;
    size_t pair_count;
    echo_order order;
    size_list sizes;
    size_t iterations, warmup;
    int raw, help, version;
} options;

static int add_pairs(options *chosen, const char *name, complaint *about)
{
    int all = strcmp(name, "all") == 0;
    const send_receive_pair *pair = find_pair(name);
    if (!all && !pair)
        return complain(about, "--pair %.80s: no such pair; pingpong --help lists them", name);
    size_t more = all ? pair_count : 1;
    const send_receive_pair **grown =
        realloc(chosen->pairs, (chosen->pair_count + more) * sizeof *grown);
    if (!grown)
        return complain(about, "--pair: no memory");
    chosen->pairs = grown;
    for (size_t i = 0; i < more; i++)
        chosen->pairs[chosen->pair_count++] = all ? &all_pairs[i] : pair;
    return 0;
}

static int parse(int argc, char **argv, options *chosen, complaint *about)
{
    enum { PAIR = 256, ORDER, SIZES, ITERATIONS, WARMUP, RAW, HELP, VERSION };
    static const struct option known[] = {
        {"pair", required_argument, NULL, PAIR},
        {"order", required_argument, NULL, ORDER},
        {"sizes", required_argument, NULL, SIZES},
        {"iterations", required_argument, NULL, ITERATIONS},
        {"warmup", required_argument, NULL, WARMUP},
        {"raw", no_argument, NULL, RAW},
        {"help", no_argument, NULL, HELP},
        {"version", no_argument, NULL, VERSION},
        {NULL, 0, NULL, 0},
    };
    long long number;
    *chosen = (options){.iterations = 100, .warmup = 10};
    opterr = 0; /* The sentence is ours, on one rank. */
    for (int option, at = 1; (option = getopt_long(argc, argv, "+", known, NULL)) != -1;
         at = optind) {
        switch (option) {
        case PAIR:
            if (add_pairs(chosen, optarg, about))
                return -1;
            break;
        case ORDER:
            if (strcmp(optarg, "modified") == 0)
                chosen->order = ORDER_MODIFIED;
            else if (strcmp(optarg, "original") == 0)
                chosen->order = ORDER_ORIGINAL;
            else
                return complain(about, "--order %.80s: must be modified or original", optarg);
            break;
        case SIZES:
            if (parse_sizes("--sizes", optarg, &chosen->sizes, about))
                return -1;
            break;
        case ITERATIONS:
            if (parse_number("--iterations", optarg, 1, MOST_ITERATIONS, &number, about))
                return -1;
            chosen->iterations = (size_t)number;
            break;
        case WARMUP:
            if (parse_number("--warmup", optarg, 0, MOST_ITERATIONS, &number, about))
                return -1;
            chosen->warmup = (size_t)number;
            break;
        case RAW:
            chosen->raw = 1;
            break;
        case HELP:
            chosen->help = 1;
            break;
        case VERSION:
            chosen->version = 1;
            break;
        default:
            return complain(about, "%.80s: unknown option or missing value; see pingpong --help",
                            argv[at]);
        }
    }
    if (optind < argc)
        return complain(about, "%.80s: unexpected argument; see pingpong --help", argv[optind]);
    if (chosen->pair_count == 0 && add_pairs(chosen, "Send/Recv", about))
        return -1;
    if (chosen->sizes.count == 0)
        return parse_sizes("--sizes", "300:4800:300", &chosen->sizes, about);
    return 0;
}

static size_t largest(const size_list *list)
{
    size_t found = 0;
    for (size_t i = 0; i < list->count; i++)
        if (list->sizes[i] > found)
            found = list->sizes[i];
    return found;
}

static unsigned char *page_aligned(size_t bytes)
{
    void *buffer = NULL;
    long page = sysconf(_SC_PAGESIZE);
    if (posix_memalign(&buffer, page > 0 ? (size_t)page : 4096, bytes ? bytes : 1) != 0)
        return NULL;
    memset(buffer, 0, bytes ? bytes : 1); /* Touched: no page fault is timed. */
    return buffer;
}

/* The byte that the message of a verification has at an offset. It has no period, so that a piece
 * in the wrong place is found whatever the size of the library's pieces, and differs for every
 * verification and sender, so that data of an earlier message is found. */
static unsigned char pattern(size_t offset, unsigned long long verification, int sender)
{
    unsigned long long mixed = (offset + 1) * 0x9e3779b97f4a7c15ULL;
    mixed ^= (2 * verification + (unsigned long long)sender + 1) * 0xc2b2ae3d27d4eb4fULL;
    mixed = (mixed ^ (mixed >> 31)) * 0xbf58476d1ce4e5b9ULL;
    return (unsigned char)(mixed >> 56);
}

/* One untimed round trip whose data both ranks compare, the n-th of this launch. Collective. */
static void verify(const send_receive_pair *pair, echo_order order, const message *message,
                   int rank, unsigned long long n)
{
    for (size_t i = 0; i < (size_t)message->bytes; i++) {
        message->send[i] = pattern(i, n, rank);
        message->receive[i] = (unsigned char)~pattern(i, n, 1 - rank);
    }
    if (rank == 0)
        send_and_await(pair, message);
    else
        echo(pair, order, message);
    long long wrong = -1, all[2];
    for (size_t i = 0; i < (size_t)message->bytes && wrong < 0; i++)
        if (message->receive[i] != pattern(i, n, 1 - rank))
            wrong = (long long)i;
    MPI_Allgather(&wrong, 1, MPI_LONG_LONG_INT, all, 1, MPI_LONG_LONG_INT, MPI_COMM_WORLD);
    for (int receiver = 0; receiver < 2; receiver++)
        if (all[receiver] >= 0) {
            char sentence[200];
            snprintf(sentence, sizeof sentence,
                     "%s, %d bytes: rank %d received wrong data from byte %lld on", pair->name,
                     message->bytes, receiver, all[receiver]);
            leave_together(PROGRAM, sentence, EXIT_FAILED);
        }
}

static void time_round_trips(const send_receive_pair *pair, const options *chosen,
                             const message *message, int rank, double *times)
{
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank != 0) {
        for (size_t i = 0; i < chosen->warmup + chosen->iterations; i++)
            echo(pair, chosen->order, message);
        return;
    }
    for (size_t i = 0; i < chosen->warmup; i++)
        send_and_await(pair, message);
    for (size_t i = 0; i < chosen->iterations; i++) {
        double began = MPI_Wtime();
        send_and_await(pair, message);
        times[i] = MPI_Wtime() - began;
    }
}

static void print_key(const char *record, const send_receive_pair *pair, const options *chosen,
                      int bytes)
{
    printf("{\"record\":\"%s\",\"operation\":\"pingpong\",\"pair\":\"%s\",\"order\":\"%s\","
           "\"message_bytes\":%d",
           record, pair->name, chosen->order == ORDER_ORIGINAL ? "original" : "modified", bytes);
}

static void print_result(const send_receive_pair *pair, const options *chosen,
                         const message *message, const double *times, double *scratch)
{
    time_summary summary = summarise(times, chosen->iterations, scratch);
    print_key("result", pair, chosen, message->bytes);
    printf(",\"iterations\":%zu,\"warmup\":%zu,\"time_s\":", chosen->iterations, chosen->warmup);
    print_summary(stdout, &summary);
    printf(",\"verified_bytes\":%lld,\"memory_copy_s\":", 2LL * message->bytes);
    print_seconds(stdout,
                  best_copy_time(message->receive, message->send, (size_t)message->bytes));
    fputs("}\n", stdout);
    if (!chosen->raw)
        return;
    print_key("iterations", pair, chosen, message->bytes);
    fputs(",\"time_s\":[", stdout);
    for (size_t i = 0; i < chosen->iterations; i++) {
        fputs(i ? "," : "", stdout);
        print_seconds(stdout, times[i]);
    }
    fputs("]}\n", stdout);
}

static int print_parameters(char **text, const options *chosen)
{
    size_t length = 0;
    FILE *out = open_memstream(text, &length);
    if (!out)
        return -1;
    fputs("{\"pairs\":[", out);
    for (size_t i = 0; i < chosen->pair_count; i++)
        fprintf(out, "%s\"%s\"", i ? "," : "", chosen->pairs[i]->name);
    fprintf(out, "],\"order\":\"%s\",\"message_bytes\":[",
            chosen->order == ORDER_ORIGINAL ? "original" : "modified");
    for (size_t i = 0; i < chosen->sizes.count; i++)
        fprintf(out, "%s%zu", i ? "," : "", chosen->sizes.sizes[i]);
    fprintf(out, "],\"iterations\":%zu,\"warmup\":%zu,\"raw\":%s}", chosen->iterations,
            chosen->warmup, chosen->raw ? "true" : "false");
    return fclose(out) == 0 ? 0 : -1;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);

    options chosen;
    complaint about;
    if (parse(argc, argv, &chosen, &about))
        leave_together(PROGRAM, about.text, EXIT_USAGE);
    if (chosen.help || chosen.version) {
        if (rank == 0)
            fputs(chosen.help ? help : PROGRAM " " PROGRAM_VERSION "\n", stdout);
        leave_together(PROGRAM, NULL, EXIT_SOUND);
    }
    if (ranks != 2) {
        complain(&about, "%d ranks form the world, and a ping-pong takes exactly 2: start it with "
                         "mpiexec -n 2 (and the mpiexec of the MPI it was built with)", ranks);
        leave_together(PROGRAM, about.text, EXIT_USAGE);
    }

    size_t most = largest(&chosen.sizes);
    unsigned char *send = page_aligned(most), *receive = page_aligned(most);
    double *times = calloc(chosen.iterations, sizeof *times);
    double *scratch = calloc(chosen.iterations, sizeof *scratch);
    char *parameters = NULL;
    if (!send || !receive || !times || !scratch || print_parameters(&parameters, &chosen))
        leave_at_once(PROGRAM, "no memory for messages of the asked size and iterations");
    if (print_header(stdout, PROGRAM, parameters))
        leave_at_once(PROGRAM, "no memory for the header");

    size_t results = 0;
    for (size_t p = 0; p < chosen.pair_count; p++)
        for (size_t s = 0; s < chosen.sizes.count; s++) {
            message message = {send, receive, (int)chosen.sizes.sizes[s]};
            verify(chosen.pairs[p], chosen.order, &message, rank, results);
            time_round_trips(chosen.pairs[p], &chosen, &message, rank, times);
            if (rank == 0)
                print_result(chosen.pairs[p], &chosen, &message, times, scratch);
            results++;
        }

    int code = rank == 0 && print_end(stdout, results) ? EXIT_FAILED : EXIT_SOUND;
    if (code)
        fprintf(stderr, PROGRAM ": the output could not be written: the disk is full or closed\n");
    free(parameters);
    free(scratch);
    free(times);
    free(receive);
    free(send);
    free(chosen.pairs);
    free_sizes(&chosen.sizes);
    leave_with_code_of_rank_0(code);
}
