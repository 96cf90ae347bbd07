/* stream: how fast all ranks together read and write memory (McCalpin's STREAM). */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../common/leaving.h"
#include "../common/ranks_alike.h"
#include "../common/record_pieces.h"
#include "../hpl/node_memory.h"
#include "cache_size.h"
#include "matrix.h"
#include "rate_measurement.h"
#include "stream_kernels.h"

/* McCalpin's rule: each array at least four times as large as all last-level caches together. */
#define CACHES 4.0
/* Where the kernel says nothing of caches: more than most nodes have. */
#define UNKNOWN_CACHES 128e6
#define LARGEST_SHARE_OF_MEMORY 0.8
#define ARRAYS 3
/* Elements of a result that are spoilt before it is timed, besides both ends. */
#define SPOILT 30

enum { A = 1, B, C };

static sampling plan;
static long long array_bytes;
static choice_list kernels;

/* What a kernel reads and writes of each element, in bytes, as McCalpin counts: a cache that reads
 * a line before it writes it moves more, which is not counted. */
static const struct {
    const char *name;
    void (*run)(void *);
    unsigned bytes;
    int target;
} known[] = {
    {"copy", stream_copy, 16, C},
    {"scale", stream_scale, 16, B},
    {"add", stream_add, 24, C},
    {"triad", stream_triad, 24, A},
};
#define KNOWN (sizeof known / sizeof known[0])

static const char *const kernel_names[] = {"copy", "scale", "add", "triad", NULL};

static const option options[] = {
    {.name = "kernel", .kind = OPTION_CHOICES, .value = &kernels, .initial = "all",
     .names = kernel_names, .help = "which loops"},
    {.name = "array-bytes", .kind = OPTION_NUMBER, .value = &array_bytes, .initial = "0",
     .least = 0, .most = 1LL << 46,
     .help = "of each of a rank's three arrays, a multiple of 8; 0: the ranks of a node together"
             " have four times its last-level caches in each"},
    RATE_OPTIONS(plan, "10"),
};

static const program_description program = {
    "stream",
    "stream: copy, scale, add and triad (McCalpin's STREAM) of all ranks at once, in\n"
    "wyeast-records-2 (benchmarks/FORMAT.md).\n",
    "mpiexec -n 2 stream --kernel triad --array-bytes 200000000",
    options, sizeof options / sizeof options[0]};

/* Small whole numbers, so that every result is exact; they have no short period. */
static double initial(size_t i, int array)
{
    return (double)((i * 2654435761ULL + (unsigned)array * 40503ULL) >> 7 & 1023);
}

static double expected(size_t i, int target, const char *kernel)
{
    const double a = initial(i, A), b = initial(i, B), c = initial(i, C);
    if (strcmp(kernel, "copy") == 0)
        return a;
    if (strcmp(kernel, "scale") == 0)
        return STREAM_SCALAR * c;
    return target == C ? a + b : b + STREAM_SCALAR * c;
}

static double *array_of(const stream_arrays *s, int array)
{
    return array == A ? s->a : array == B ? s->b : s->c;
}

/* A kernel that is timed. */
typedef struct {
    stream_arrays *arrays;
    size_t kernel;
    unsigned long long spots; /* What the next elements to be spoilt follow from. */
} timed_kernel;

static void run(void *context)
{
    const timed_kernel *t = context;
    known[t->kernel].run(t->arrays);
}

/* Before each iteration, untimed: some elements of the result that are no numbers, elsewhere each time
 * but for the ends, and so few that the caches are as they were. What a timed loop leaves out is seen
 * in the end. */
static void spoil(void *context)
{
    timed_kernel *t = context;
    double *target = array_of(t->arrays, known[t->kernel].target);
    const size_t count = t->arrays->count;
    target[0] = target[count - 1] = NAN;
    for (int i = 0; i < SPOILT; i++)
        target[(size_t)(next_number(&t->spots) * (double)count)] = NAN;
}

static void fill_arrays(size_t k, stream_arrays *s)
{
    for (int array = A; array <= C; array++)
        for (size_t i = 0; i < s->count; i++)
            array_of(s, array)[i] = array == known[k].target ? NAN : initial(i, array);
}

/* Compare every element of a kernel's result. */
static int check_kernel(size_t k, stream_arrays *s, int rank, complaint *about)
{
    for (size_t i = 0; i < s->count; i++) {
        const double found = array_of(s, known[k].target)[i];
        const double right = expected(i, known[k].target, known[k].name);
        if (!(found == right))
            return complain(about, "rank %d, %s: element %zu is %.17g and must be %.17g", rank,
                            known[k].name, i, found, right);
    }
    return 0;
}

/* How many ranks are on this rank's host. */
static int ranks_here(void)
{
    int count;
    rank_place here;
    ranks_alike of_host;
    find_place(&here);
    find_alike(&of_host, here.host);
    MPI_Comm_size(of_host.sharing, &count);
    free_alike(&of_host);
    return count;
}

/* The elements of a rank's arrays, of all ranks alike; what no node has room for is refused. */
static size_t elements(void)
{
    const double here = ranks_here();
    const double caches = last_level_caches();
    double bytes = (double)array_bytes;
    if (array_bytes == 0)
        bytes = CACHES * (caches > 0.0 ? caches : UNKNOWN_CACHES) / here;
    double largest = bytes;
    MPI_Allreduce(&bytes, &largest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    const double wanted = ARRAYS * largest * here;
    const double room = LARGEST_SHARE_OF_MEMORY * memory_of_node();
    complaint about;
    if (wanted > room)
        complain(&about, "%.0f rank(s) of a node need %.3g GB for their arrays, and %.0f%% of its "
                         "memory is %.3g GB: take a smaller --array-bytes", here, wanted / 1e9,
                 100 * LARGEST_SHARE_OF_MEMORY, room / 1e9);
    refuse_together(&program, wanted > room, &about);
    return (size_t)(largest / sizeof(double));
}

static void measure(size_t k, stream_arrays *s, int rank)
{
    complaint about;
    timed_kernel timed = {s, k, 1};
    fill_arrays(k, s);
    run(&timed);
    refuse_together(&program, check_kernel(k, s, rank, &about) != 0, &about);
    char keys[200];
    snprintf(keys, sizeof keys,
             "\"operation\":\"stream\",\"kernel\":\"%s\",\"array_bytes\":%zu,"
             "\"moved_bytes\":%zu,\"verified_elements\":%zu",
             known[k].name, s->count * sizeof(double), s->count * known[k].bytes, s->count);
    const rate_work work = {{.run = run, .before = spoil, .context = &timed}, 1, keys};
    measure_rate(&program, &plan, &work);
    /* What was timed must be right too: the last iteration's result. */
    refuse_together(&program, check_kernel(k, s, rank, &about) != 0, &about);
}

int main(int argc, char **argv)
{
    begin_program(&program, &argc, &argv);
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    complaint about;
    if (array_bytes % (long long)sizeof(double) != 0) {
        complain(&about, "--array-bytes %lld: not a multiple of 8", array_bytes);
        leave_together(program.name, about.text, EXIT_USAGE);
    }
    const size_t count = elements();
    stream_arrays s = {numbers_or_leave(&program, count), numbers_or_leave(&program, count),
                       numbers_or_leave(&program, count), count};
    begin_output(&program);
    for (size_t i = 0; i < kernels.count; i++)
        for (size_t k = 0; k < KNOWN; k++)
            if (strcmp(kernels.names[i], known[k].name) == 0)
                measure(k, &s, rank);
    const size_t results = kernels.count;
    free(s.a);
    free(s.b);
    free(s.c);
    end_program(&program, results);
}
