/* Time collective operations: those of NTNU's SimpleBench, NASA's ATA, Kearns' section 5.4 and
 * goptest, over the world or over its two halves at once. */
#include <mpi.h>
#include <stdio.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../common/buffers.h"
#include "../common/communication.h"
#include "../common/leaving.h"
#include "../common/options.h"

#define LARGEST_SCRUB (1LL << 40)
#define LARGEST_PAGE_OFFSET 4088

/* What every rank of the group has in its two buffers, in messages of the asked size. */
typedef enum { ONE, OF_ROOT, OF_ALL } extent;

typedef struct {
    const char *name;
    extent send, receive;
    int root_sends, root_receives, reduces;
    void (*run)(void *context);
} collective;

typedef struct {
    const collective *what;
    MPI_Comm comm;
    int rank, ranks;
    unsigned char *send, *receive, *unrelated;
    size_t bytes, scrubbed;
} call;

static void run_barrier(void *context)
{
    MPI_Barrier(((call *)context)->comm);
}

static void run_bcast(void *context)
{
    call *c = context;
    MPI_Bcast(c->rank == 0 ? c->send : c->receive, (int)c->bytes, MPI_BYTE, 0, c->comm);
}

static void run_gather(void *context)
{
    call *c = context;
    MPI_Gather(c->send, (int)c->bytes, MPI_BYTE, c->receive, (int)c->bytes, MPI_BYTE, 0, c->comm);
}

static void run_scatter(void *context)
{
    call *c = context;
    MPI_Scatter(c->send, (int)c->bytes, MPI_BYTE, c->receive, (int)c->bytes, MPI_BYTE, 0, c->comm);
}

static void run_allgather(void *context)
{
    call *c = context;
    MPI_Allgather(c->send, (int)c->bytes, MPI_BYTE, c->receive, (int)c->bytes, MPI_BYTE, c->comm);
}

static void run_alltoall(void *context)
{
    call *c = context;
    MPI_Alltoall(c->send, (int)c->bytes, MPI_BYTE, c->receive, (int)c->bytes, MPI_BYTE, c->comm);
}

static int doubles(const call *c)
{
    return (int)(c->bytes / sizeof(double));
}

static void run_reduce_min(void *context)
{
    call *c = context;
    MPI_Reduce(c->send, c->receive, doubles(c), MPI_DOUBLE, MPI_MIN, 0, c->comm);
}

static void run_reduce_sum(void *context)
{
    call *c = context;
    MPI_Reduce(c->send, c->receive, doubles(c), MPI_DOUBLE, MPI_SUM, 0, c->comm);
}

static void run_allreduce_min(void *context)
{
    call *c = context;
    MPI_Allreduce(c->send, c->receive, doubles(c), MPI_DOUBLE, MPI_MIN, c->comm);
}

static void run_allreduce_sum(void *context)
{
    call *c = context;
    MPI_Allreduce(c->send, c->receive, doubles(c), MPI_DOUBLE, MPI_SUM, c->comm);
}

static const collective collectives[] = {
    {"barrier", ONE, ONE, 0, 0, 0, run_barrier},
    {"bcast", ONE, ONE, 1, 0, 0, run_bcast},
    {"gather", ONE, OF_ROOT, 0, 1, 0, run_gather},
    {"scatter", OF_ROOT, ONE, 1, 0, 0, run_scatter},
    {"allgather", ONE, OF_ALL, 0, 0, 0, run_allgather},
    {"alltoall", OF_ALL, OF_ALL, 0, 0, 0, run_alltoall},
    {"reduce-min", ONE, ONE, 0, 1, 1, run_reduce_min},
    {"reduce-sum", ONE, ONE, 0, 1, 1, run_reduce_sum},
    {"allreduce-min", ONE, ONE, 0, 0, 1, run_allreduce_min},
    {"allreduce-sum", ONE, ONE, 0, 0, 1, run_allreduce_sum},
};
#define COLLECTIVES (sizeof collectives / sizeof collectives[0])

static const char *const operation_names[] = {
    "barrier", "bcast", "gather", "scatter", "allgather", "alltoall", "reduce-min", "reduce-sum",
    "allreduce-min", "allreduce-sum", NULL};
static const char *const group_names[] = {"world", "halves", NULL};

static sampling plan;
static choice_list operations, groups;
static size_list sizes;
static long long scrub_bytes, page_offset;

static const option options[] = {
    {.name = "operation", .kind = OPTION_CHOICES, .value = &operations, .initial = "all",
     .names = operation_names, .help = "what is timed"},
    {.name = "group", .kind = OPTION_CHOICES, .value = &groups, .initial = "world",
     .names = group_names, .help = "world, or both halves of it at once"},
    {.name = "sizes", .kind = OPTION_SIZES, .value = &sizes, .initial = "8",
     .help = "message sizes: what one rank sends to one other, or the vector that is reduced"},
    {.name = "scrub-bytes", .kind = OPTION_NUMBER, .value = &scrub_bytes, .initial = "0",
     .least = 0, .most = LARGEST_SCRUB,
     .help = "before each iteration, untimed, go through so many bytes of other memory"},
    {.name = "page-offset", .kind = OPTION_NUMBER, .value = &page_offset, .initial = "0",
     .least = 0, .most = LARGEST_PAGE_OFFSET,
     .help = "buffers begin so many bytes behind the beginning of a page, a multiple of 8"},
    SAMPLING_OPTIONS(plan, "100", "barrier"),
};

static const program_description program = {
    "collective",
    "collective: the time of collective operations, in wyeast-records-1 (benchmarks/FORMAT.md).\n"
    "An iteration ends when the last rank is through. Reductions are of doubles.\n",
    "mpiexec -n 4 collective --operation alltoall --group all --sizes 8 --sizes 8192",
    options, sizeof options / sizeof options[0]};

static void scrub_caches(void *context)
{
    call *c = context;
    scrub(c->unrelated, c->scrubbed);
}

/* Small whole numbers, so that every order of summation gives the same sum. */
static double element(size_t i, unsigned long long n, int rank)
{
    return (double)pattern(i, n, rank);
}

/* In the world each rank has a place of its own in the pattern; so has it in its half. */
static void prepare(void *context, unsigned long long n)
{
    call *c = context;
    const unsigned long long messages = (unsigned)c->ranks;
    if (c->what->reduces) {
        double *send = (double *)(void *)c->send, *receive = (double *)(void *)c->receive;
        for (size_t i = 0; i < (size_t)doubles(c); i++) {
            send[i] = element(i, n, c->rank);
            receive[i] = -1.0;
        }
        return;
    }
    for (unsigned m = 0; m < (c->what->send == ONE ? 1 : messages); m++)
        fill_pattern(c->send + m * c->bytes, c->bytes, n * messages + m, c->rank);
    for (unsigned m = 0; m < (c->what->receive == ONE ? 1 : messages); m++)
        fill_wrong(c->receive + m * c->bytes, c->bytes,
                   n * messages + (c->what->send == ONE ? 0 : (unsigned)c->rank), (int)m);
}

static long long verify_reduction(const call *c, unsigned long long n, complaint *about)
{
    const double *receive = (const double *)(const void *)c->receive;
    const int least = strstr(c->what->name, "min") != NULL;
    if (c->what->root_receives && c->rank != 0)
        return 0;
    for (size_t i = 0; i < (size_t)doubles(c); i++) {
        double right = element(i, n, 0);
        for (int rank = 1; rank < c->ranks; rank++) {
            double other = element(i, n, rank);
            right = least ? (other < right ? other : right) : right + other;
        }
        if (receive[i] != right)
            return complain(about, "%s, %zu bytes: element %zu is %g on rank %d, right is %g",
                            c->what->name, c->bytes, i, receive[i], c->rank, right);
    }
    return (long long)c->bytes;
}

static long long verify(void *context, unsigned long long n, complaint *about)
{
    const call *c = context;
    if (c->bytes == 0)
        return 0;
    if (c->what->reduces)
        return verify_reduction(c, n, about);
    if ((c->what->root_receives && c->rank != 0))
        return 0;
    const size_t senders = c->what->receive == ONE ? 1 : (size_t)c->ranks;
    const unsigned long long number =
        n * (unsigned)c->ranks + (c->what->send == ONE ? 0 : (unsigned)c->rank);
    long long compared = 0;
    for (size_t sender = 0; sender < senders; sender++) {
        if (c->what->receive == ONE && c->rank == 0)
            continue; /* The root sends to itself, or not at all. */
        long long wrong = find_difference(c->receive + sender * c->bytes, c->bytes,
                                          number, (int)sender);
        if (wrong >= 0)
            return complain(about, "%s, %zu bytes: rank %d has wrong data of rank %zu from byte "
                                   "%lld on", c->what->name, c->bytes, c->rank, sender, wrong);
        if ((int)sender != c->rank)
            compared += (long long)c->bytes;
    }
    return compared;
}

/* What this rank has to send to others; of a reduction, what it must have in the end. */
static unsigned long long moved(const call *c)
{
    const unsigned long long others = (unsigned long long)c->ranks - 1;
    if (c->bytes == 0)
        return 0;
    if (c->what->reduces)
        return c->what->root_receives && c->rank != 0 ? 0 : c->bytes;
    if (c->what->root_sends)
        return c->rank == 0 ? others * c->bytes : 0;
    if (c->what->root_receives)
        return c->rank == 0 ? 0 : c->bytes;
    return others * c->bytes;
}

static void measure(const collective *what, const char *group, MPI_Comm comm, size_t bytes,
                    unsigned char *buffers[3])
{
    call c = {.what = what, .comm = comm, .send = buffers[0], .receive = buffers[1],
              .unrelated = buffers[2], .bytes = bytes, .scrubbed = (size_t)scrub_bytes};
    MPI_Comm_rank(comm, &c.rank);
    MPI_Comm_size(comm, &c.ranks);
    verified_operation operation = {
        {.run = what->run, .before = scrub_bytes ? scrub_caches : NULL, .context = &c},
        prepare, verify};
    communication about = {what->name, "", group, c.ranks, bytes, moved(&c)};
    measure_communication(&program, &plan, &operation, &about);
}

static const collective *find_collective(const char *name)
{
    for (size_t i = 0; i < COLLECTIVES; i++)
        if (strcmp(collectives[i].name, name) == 0)
            return &collectives[i];
    return NULL;
}

static int is_chosen(const choice_list *list, const char *name)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->names[i], name) == 0)
            return 1;
    return 0;
}

/* A sentence where the arguments do not go together or with the world; else NULL. */
static const char *refusal(int ranks, complaint *about)
{
    if (ranks < 2)
        return "one rank forms the world, and a collective operation takes 2 at least";
    if (is_chosen(&groups, "halves") && (ranks < 4 || ranks % 2)) {
        complain(about, "--group halves: %d ranks have no two equal halves of 2 ranks or more",
                 ranks);
        return about->text;
    }
    if ((size_t)page_offset % sizeof(double)) {
        complain(about, "--page-offset %lld: buffers hold doubles, so it is a multiple of %zu bytes",
                 page_offset, sizeof(double));
        return about->text;
    }
    for (size_t o = 0; o < operations.count; o++)
        for (size_t s = 0; s < sizes.count; s++) {
            if (find_collective(operations.names[o])->reduces &&
                sizes.sizes[s] % sizeof(double)) {
                complain(about, "--sizes %zu: %s reduces doubles, so its sizes are multiples of "
                                "%zu bytes", sizes.sizes[s], operations.names[o], sizeof(double));
                return about->text;
            }
            if (sizes.sizes[s] > SIZE_MAX / (size_t)ranks / 2) {
                complain(about, "--sizes %zu: too large for %d ranks", sizes.sizes[s], ranks);
                return about->text;
            }
        }
    return NULL;
}

int main(int argc, char **argv)
{
    begin_program(&program, &argc, &argv);
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    complaint about;
    const char *sentence = refusal(ranks, &about);
    if (sentence)
        leave_together(program.name, sentence, EXIT_USAGE);

    const size_t offset = (size_t)page_offset;
    const size_t room = largest_size(&sizes) * (size_t)ranks + offset;
    unsigned char *memory[3] = {page_aligned(room), page_aligned(room),
                                 page_aligned((size_t)scrub_bytes)};
    if (!memory[0] || !memory[1] || !memory[2])
        leave_at_once(program.name, "no memory for messages of the asked sizes");
    unsigned char *buffers[3] = {memory[0] + offset, memory[1] + offset, memory[2]};
    MPI_Comm halves;
    MPI_Comm_split(MPI_COMM_WORLD, rank * 2 >= ranks, rank, &halves);
    begin_output(&program);
    announce_points(&program, operations.count * groups.count * sizes.count);
    for (size_t o = 0; o < operations.count; o++) {
        const collective *what = find_collective(operations.names[o]);
        for (size_t g = 0; g < groups.count; g++)
            for (size_t s = 0; s < sizes.count; s++) {
                const int is_barrier = what->run == run_barrier;
                if (is_barrier && s > 0)
                    break; /* It has no message, so no size. */
                measure(what, groups.names[g],
                        strcmp(groups.names[g], "halves") == 0 ? halves : MPI_COMM_WORLD,
                        is_barrier ? 0 : sizes.sizes[s], buffers);
            }
    }
    report_estimate(&plan);
    MPI_Comm_free(&halves);
    for (size_t i = 0; i < 3; i++)
        free(memory[i]);
    end_program(&program, communications_reported());
}
