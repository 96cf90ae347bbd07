/* Time one-sided operations in which the target has no part: within one access to all of a window, by
 * each kind of window, with a target that waits in MPI or computes. */
#include <limits.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../common/buffers.h"
#include "../common/communication.h"
#include "../common/computation.h"
#include "../common/end_of_access.h"
#include "../common/leaving.h"
#include "../common/options.h"
#include "../common/standard.h"
#include "accesses.h"
#include "windows.h"

/* How long the target computes in each iteration: many times as long as a short operation. */
#define COMPUTING_S 1e-3
#define MOST_IN_A_ROW 10000

static const char *const target_names[] = {"waiting", "computing", NULL};

static sampling plan;
static choice_list operations, windows, targets;
static size_list sizes;
static long long in_a_row;

static const option options[] = {
    {.name = "operation", .kind = OPTION_CHOICES, .value = &operations, .initial = "all",
     .names = access_names, .help = "what rank 0 does to rank 1's memory"},
    {.name = "window", .kind = OPTION_CHOICES, .value = &windows, .initial = "allocate",
     .names = window_names, .help = "how that memory was made part of a window"},
    {.name = "target", .kind = OPTION_CHOICES, .value = &targets, .initial = "waiting",
     .names = target_names,
     .help = "rank 1 waits in MPI, or computes for a millisecond without MPI"},
    {.name = "sizes", .kind = OPTION_SIZES, .value = &sizes, .initial = "8",
     .help = "message sizes in bytes; accumulate adds doubles, and what is of one number has 8"},
    {.name = "in-a-row", .kind = OPTION_NUMBER, .value = &in_a_row, .initial = "1", .least = 1,
     .most = MOST_IN_A_ROW,
     .help = "operations of an iteration, each complete before the next: some are shorter than a\n"
             "      step of the clock"},
    SAMPLING_OPTIONS(plan, "100", "barrier"),
};

static const program_description program = {
    "passive_target",
    "passive_target: one-sided operations between two ranks in which the target has no part, in\n"
    "wyeast-records-2 (benchmarks/FORMAT.md). An iteration is an operation and MPI_Win_flush, or\n"
    "of rput and rget MPI_Wait, on rank 0, whose time alone counts.\n",
    "mpiexec -n 2 passive_target --operation put --window all --sizes 8 --sizes 1000000",
    options, sizeof options / sizeof options[0]};

static void measure(access *a, const char *target)
{
    const int computes = strcmp(target, "computing") == 0;
    char method[80], row[40] = "";
    if (in_a_row > 1)
        snprintf(row, sizeof row, " %lld in a row", in_a_row);
    snprintf(method, sizeof method, "%s%s%s", a->window.kind, row, computes ? " computing" : "");
    a->operations = computes ? operations_for(COMPUTING_S) : 0;
    const int waits = strcmp(plan.synchronisation, "window") == 0;
    verified_operation operation = {{.run = run_access, .before = waits ? await_end_of_access : NULL,
                                     .context = a, .settle = settle_accesses, .timed_by_rank_0 = 1},
                                    prepare_access, verify_access};
    const int moves = a->rank == ORIGIN ? a->kind->writes : a->kind->fetches;
    communication about = {a->kind->name, method, "pair", 2, a->bytes, 
                           moves ? a->in_a_row * a->bytes : 0};
    measure_communication(&program, &plan, &operation, &about);
}

static void measure_operation(access *a, const char *name)
{
    a->kind = find_access(name);
    for (size_t t = 0; t < targets.count; t++)
        for (size_t s = 0; s < sizes.count; s++) {
            if (a->kind->fixed_bytes && s > 0)
                break;
            a->bytes = a->kind->fixed_bytes ? a->kind->fixed_bytes : sizes.sizes[s];
            measure(a, targets.names[t]);
        }
}

static size_t points(void)
{
    size_t of_window = 0;
    for (size_t o = 0; o < operations.count; o++)
        of_window += find_access(operations.names[o])->fixed_bytes ? 1 : sizes.count;
    return windows.count * targets.count * of_window;
}

static const char *refusal(int ranks, complaint *about)
{
    if (!HAS_MPI3)
        return "this MPI has no MPI_Win_lock_all";
    if (ranks != 2) {
        complain(about, "the world has %d ranks, and one-sided operations are timed between "
                        "exactly 2", ranks);
        return about->text;
    }
    for (size_t s = 0; s < sizes.count; s++)
        if (sizes.sizes[s] > INT_MAX / (size_t)in_a_row) {
            complain(about, "--sizes %zu: the calls count bytes in an int, all in a row together",
                     sizes.sizes[s]);
            return about->text;
        }
    for (size_t o = 0; o < operations.count; o++)
        for (size_t s = 0; s < sizes.count; s++) {
            const access_kind *kind = find_access(operations.names[o]);
            if (kind->adds && !kind->fixed_bytes && sizes.sizes[s] % sizeof(double)) {
                complain(about, "--sizes %zu: %s adds doubles: the sizes must be multiples of %zu "
                                "bytes", sizes.sizes[s], kind->name, sizeof(double));
                return about->text;
            }
        }
    return NULL;
}

static void measure_window(access *a, const char *kind, size_t room)
{
    complaint about;
    const char *lacks = lacks_window(kind);
    if (lacks) {
        complain(&about, "%s: %s", kind, lacks);
        leave_out(&program, about.text);
        return;
    }
    if (open_window(&a->window, kind, room))
        leave_at_once(program.name, "no memory for messages of the requested sizes");
    complain(&about, "%s: what a rank writes into such a window and what the other one finds there "
                     "are not one memory (MPI_WIN_SEPARATE)", kind);
    refuse_together(&program, !has_one_memory(&a->window), &about);
    for (size_t o = 0; o < operations.count; o++)
        measure_operation(a, operations.names[o]);
    close_window(&a->window);
}

int main(int argc, char **argv)
{
    begin_program(&program, &argc, &argv);
    int ranks;
    access a = {0};
    MPI_Comm_rank(MPI_COMM_WORLD, &a.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    complaint about;
    const char *sentence = refusal(ranks, &about);
    if (sentence)
        leave_together(program.name, sentence, EXIT_USAGE);
    a.in_a_row = (size_t)in_a_row;
    const size_t largest = largest_size(&sizes);
    const size_t room = a.in_a_row * (largest < sizeof(long long) ? sizeof(long long) : largest);
    a.given = page_aligned(room);
    a.expected = page_aligned(room);
    a.taken = page_aligned(room);
    if (!a.given || !a.expected || !a.taken)
        leave_at_once(program.name, "no memory for messages of the requested sizes");
    begin_output(&program);
    announce_points(&program, points());
    for (size_t w = 0; w < windows.count; w++)
        measure_window(&a, windows.names[w], room);
    report_estimate(&plan);
    free(a.taken);
    free(a.expected);
    free(a.given);
    end_program(&program, communications_reported());
}
