/* Time one-sided operations between two ranks: put, get and accumulate, by each way in which MPI
 * brings them to an end. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../common/buffers.h"
#include "../common/communication.h"
#include "../common/end_of_access.h"
#include "../common/leaving.h"
#include "../common/options.h"

enum { ORIGIN = 0, TARGET = 1 };

static const char *const operation_names[] = {"put", "get", "accumulate", NULL};
static const char *const completion_names[] = {"fence", "lock", "post-start", NULL};

static sampling plan;
static choice_list operations, completions;
static size_list sizes;

static const option options[] = {
    {.name = "operation", .kind = OPTION_CHOICES, .value = &operations, .initial = "all",
     .names = operation_names, .help = "what rank 0 does to rank 1's memory"},
    {.name = "completion", .kind = OPTION_CHOICES, .value = &completions, .initial = "all",
     .names = completion_names, .help = "how it begins and ends: with fences, a lock, or a group"},
    {.name = "sizes", .kind = OPTION_SIZES, .value = &sizes, .initial = "8",
     .help = "message sizes in bytes; accumulate adds doubles"},
    SAMPLING_OPTIONS(plan, "100", "barrier"),
};

static const program_description program = {
    "one_sided",
    "one_sided: put, get and accumulate between two ranks, in wyeast-records-2\n"
    "(benchmarks/FORMAT.md). An iteration is one operation with its beginning and end.\n",
    "mpiexec -n 2 one_sided --operation put --completion fence --sizes 8 --sizes 1000000",
    options, sizeof options / sizeof options[0]};

typedef struct {
    const char *operation, *completion;
    int rank;
    size_t bytes;
    unsigned char *own, *exposed; /* The origin's buffer, and the memory in the window. */
    MPI_Win window;
    MPI_Group other; /* The other rank alone. */
} access;

static int is(const char *one, const char *other)
{
    return strcmp(one, other) == 0;
}

static void start_operation(access *a)
{
    const int bytes = (int)a->bytes, doubles = (int)(a->bytes / sizeof(double));
    if (is(a->operation, "put"))
        MPI_Put(a->own, bytes, MPI_BYTE, TARGET, 0, bytes, MPI_BYTE, a->window);
    else if (is(a->operation, "get"))
        MPI_Get(a->own, bytes, MPI_BYTE, TARGET, 0, bytes, MPI_BYTE, a->window);
    else
        MPI_Accumulate(a->own, doubles, MPI_DOUBLE, TARGET, 0, doubles, MPI_DOUBLE, MPI_SUM,
                       a->window);
}

static void run_fence(void *context)
{
    access *a = context;
    MPI_Win_fence(0, a->window);
    if (a->rank == ORIGIN)
        start_operation(a);
    MPI_Win_fence(0, a->window);
}

#ifndef LAM_MPI /* It declares locks and has none. */
static void run_lock(void *context)
{
    access *a = context;
    if (a->rank != ORIGIN)
        return;
    MPI_Win_lock(MPI_LOCK_SHARED, TARGET, 0, a->window);
    start_operation(a);
    MPI_Win_unlock(TARGET, a->window);
}

/* The memory in the window is this rank's to read and write only between these two. */
static void begin_own_access(const access *a)
{
    if (is(a->completion, "lock"))
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, a->rank, 0, a->window);
}

static void end_own_access(const access *a)
{
    if (is(a->completion, "lock"))
        MPI_Win_unlock(a->rank, a->window);
}
#else
#define run_lock NULL
#define begin_own_access(a) ((void)(a))
#define end_own_access(a) ((void)(a))
#endif

static void run_post_start(void *context)
{
    access *a = context;
    if (a->rank == ORIGIN) {
        MPI_Win_start(a->other, 0, a->window);
        start_operation(a);
        MPI_Win_complete(a->window);
    } else {
        MPI_Win_post(a->other, 0, a->window);
        MPI_Win_wait(a->window);
    }
}

static double element(size_t i, unsigned long long n, int rank)
{
    return (double)pattern(i, n, rank);
}

static void fill_doubles(unsigned char *buffer, size_t bytes, unsigned long long n, int rank)
{
    double *values = (double *)(void *)buffer;
    for (size_t i = 0; i < bytes / sizeof(double); i++)
        values[i] = element(i, n, rank);
}

static void prepare(void *context, unsigned long long n)
{
    access *a = context;
    begin_own_access(a);
    if (is(a->operation, "accumulate")) {
        fill_doubles(a->own, a->bytes, n, ORIGIN);
        fill_doubles(a->exposed, a->bytes, n, TARGET);
    } else {
        const int source = is(a->operation, "put") ? ORIGIN : TARGET;
        unsigned char *right = source == ORIGIN ? a->own : a->exposed;
        unsigned char *wrong = source == ORIGIN ? a->exposed : a->own;
        fill_pattern(right, a->bytes, n, source);
        fill_wrong(wrong, a->bytes, n, source);
    }
    end_own_access(a);
}

static int is_sender(const access *a)
{
    return a->rank == (is(a->operation, "get") ? TARGET : ORIGIN);
}

static long long verify_sum(const access *a, unsigned long long n, complaint *about)
{
    const double *values = (const double *)(const void *)a->exposed;
    for (size_t i = 0; i < a->bytes / sizeof(double); i++) {
        const double right = element(i, n, ORIGIN) + element(i, n, TARGET);
        if (values[i] != right)
            return complain(about, "accumulate, %s, %zu bytes: element %zu is %g, right is %g",
                            a->completion, a->bytes, i, values[i], right);
    }
    return (long long)a->bytes;
}

static long long verify(void *context, unsigned long long n, complaint *about)
{
    const access *a = context;
    MPI_Barrier(MPI_COMM_WORLD); /* With a lock the target does not know when it is over. */
    if (is_sender(a))
        return 0;
    long long status;
    begin_own_access(a);
    if (is(a->operation, "accumulate")) {
        status = verify_sum(a, n, about);
    } else {
        const int source = is(a->operation, "put") ? ORIGIN : TARGET;
        const long long wrong = find_difference(source == ORIGIN ? a->exposed : a->own, a->bytes,
                                                n, source);
        status = wrong < 0 ? (long long)a->bytes
                           : complain(about, "%s, %s, %zu bytes: wrong data from byte %lld on",
                                      a->operation, a->completion, a->bytes, wrong);
    }
    end_own_access(a);
    return status;
}

static void measure(access *a, void (*run)(void *))
{
    /* With a lock the target has no part in an iteration. */
    const int waits = is(a->completion, "lock") && is(plan.synchronisation, "window");
    verified_operation operation = {
        {.run = run, .before = waits ? await_end_of_access : NULL, .context = a}, prepare, verify};
    communication about = {a->operation, a->completion, "pair", 2, a->bytes,
                           is_sender(a) ? a->bytes : 0};
    measure_communication(&program, &plan, &operation, &about);
}

static const char *refusal(int ranks, complaint *about)
{
    if (ranks != 2) {
        complain(about, "the world has %d ranks, and one-sided operations are timed between "
                        "exactly 2", ranks);
        return about->text;
    }
    for (size_t o = 0; o < operations.count; o++)
        for (size_t s = 0; s < sizes.count; s++)
            if (is(operations.names[o], "accumulate") && sizes.sizes[s] % sizeof(double)) {
                complain(about, "--sizes %zu: accumulate adds doubles: the sizes must be multiples "
                                "of %zu bytes", sizes.sizes[s], sizeof(double));
                return about->text;
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

    const size_t room = largest_size(&sizes);
    access a = {.rank = rank, .own = page_aligned(room), .exposed = page_aligned(room)};
    if (!a.own || !a.exposed)
        leave_at_once(program.name, "no memory for messages of the requested sizes");
    begin_output(&program);
    MPI_Group world;
    int other = 1 - rank;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 1, &other, &a.other);
    MPI_Win_create(a.exposed, (MPI_Aint)(room ? room : 1), 1, MPI_INFO_NULL, MPI_COMM_WORLD,
                   &a.window);
    announce_points(&program, operations.count * completions.count * sizes.count);
    for (size_t c = 0; c < completions.count; c++) {
        a.completion = completions.names[c];
        void (*run)(void *) = is(a.completion, "fence")  ? run_fence
                              : is(a.completion, "lock") ? run_lock
                                                         : run_post_start;
        if (!run) {
            complain(&about, "%s: this MPI has no such calls", a.completion);
            leave_out(&program, about.text);
            continue;
        }
        for (size_t o = 0; o < operations.count; o++)
            for (size_t s = 0; s < sizes.count; s++) {
                a.operation = operations.names[o];
                a.bytes = sizes.sizes[s];
                measure(&a, run);
            }
    }
    report_estimate(&plan);
    MPI_Win_free(&a.window);
    MPI_Group_free(&a.other);
    MPI_Group_free(&world);
    free(a.exposed);
    free(a.own);
    end_program(&program, communications_reported());
}
