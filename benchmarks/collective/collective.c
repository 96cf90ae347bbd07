/* Time collective operations: those of NTNU's SimpleBench, NASA's ATA, Kearns' section 5.4 and
 * goptest, and what applications call beyond them, over the world or over its two halves at once. */
#include <limits.h>
#include <mpi.h>
#include <stdio.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../common/buffers.h"
#include "../common/communication.h"
#include "../common/computation.h"
#include "../common/leaving.h"
#include "../common/options.h"
#include "forms.h"
#include "layout.h"
#include "proof.h"

#define LARGEST_SCRUB (1LL << 40)
#define LARGEST_PAGE_OFFSET 4088

static const char *const group_names[] = {"world", "halves", NULL};

static sampling plan;
static choice_list operations, groups, how_called;
static size_list sizes;
static long long scrub_bytes, page_offset;

static const option options[] = {
    {.name = "operation", .kind = OPTION_CHOICES, .value = &operations, .initial = "all",
     .names = operation_names, .help = "what is timed"},
    {.name = "group", .kind = OPTION_CHOICES, .value = &groups, .initial = "world",
     .names = group_names, .help = "world, or both halves of it at once"},
    {.name = "form", .kind = OPTION_CHOICES, .value = &how_called, .initial = "blocking",
     .names = form_names,
     .help = "how it is called; non-blocking also with a computation beside it"},
    {.name = "sizes", .kind = OPTION_SIZES, .value = &sizes, .initial = "8",
     .help = "message sizes: what one rank sends to one other, or the vector that is reduced"},
    {.name = "scrub-bytes", .kind = OPTION_NUMBER, .value = &scrub_bytes, .initial = "0",
     .least = 0, .most = LARGEST_SCRUB,
     .help = "before each iteration, untimed, go through this many bytes of other memory"},
    {.name = "page-offset", .kind = OPTION_NUMBER, .value = &page_offset, .initial = "0",
     .least = 0, .most = LARGEST_PAGE_OFFSET,
     .help = "buffers begin this many bytes after the start of a page; a multiple of 8"},
    SAMPLING_OPTIONS(plan, "100", "barrier"),
};

static const program_description program = {
    "collective",
    "collective: the time of collective operations, in wyeast-records-2 (benchmarks/FORMAT.md).\n"
    "An iteration ends when the last rank has finished. Reductions are of doubles.\n",
    "mpiexec -n 4 collective --operation alltoall --group all --sizes 8 --sizes 8192",
    options, sizeof options / sizeof options[0]};

static void scrub_caches(void *context)
{
    call *c = context;
    scrub(c->unrelated, c->scrubbed);
}

/* What this rank has to send to others; of a reduction, what it must have of others in the end. */
static unsigned long long moved(const call *c)
{
    const collective *what = c->what;
    if (what->is_barrier)
        return 0;
    if (what->reduces)
        return (what->root_receives && c->rank != 0) ||
                       (what->of != OF_EVERY_RANK && c->rank == 0)
                   ? 0
                   : sizeof(double) * (unsigned long long)count_from(c, 0);
    unsigned long long bytes = 0;
    for (int other = 0; other < c->ranks; other++)
        if (other != c->rank && (!what->root_sends || c->rank == 0) &&
            (!what->root_receives || other == 0))
            bytes += (unsigned long long)count_to(c, (size_t)other);
    return bytes;
}

static void prepare_nothing(void *context, unsigned long long n)
{
    (void)context;
    (void)n;
}

static long long verify_nothing(void *context, unsigned long long n, complaint *about)
{
    (void)context;
    (void)n;
    (void)about;
    return 0;
}

/* How much of a non-blocking call passes beside a computation that takes as long as the call itself:
 * what the two take together, and the computation alone. */
static void measure_overlap(call *c, double seconds, communication about,
                            verified_operation operation)
{
    c->operations = operations_for(seconds);
    c->run = operation.timed.run = run_overlapped;
    about.method = "non-blocking overlapped";
    measure_communication(&program, &plan, &operation, &about);
    operation.timed.run = run_computing;
    operation.prepare = prepare_nothing;
    operation.verify = verify_nothing;
    about.method = "non-blocking computing";
    about.moved_bytes = 0;
    measure_communication(&program, &plan, &operation, &about);
}

static void measure(const collective *what, const form *how, const char *group, MPI_Comm comm,
                    size_t bytes, unsigned char *buffers[3])
{
    call c = {.what = what, .run = run_of(how, what), .comm = comm, .send = buffers[0],
              .receive = buffers[1], .unrelated = buffers[2], .bytes = bytes,
              .scrubbed = (size_t)scrub_bytes, .op = what->reduces == LEAST ? MPI_MIN : MPI_SUM};
    MPI_Comm_rank(comm, &c.rank);
    MPI_Comm_size(comm, &c.ranks);
    MPI_Comm_rank(MPI_COMM_WORLD, &c.first);
    c.first -= c.rank;
    if (lay_out(&c))
        leave_at_once(program.name, "no memory for the lengths of the blocks");
    place_buffers(&c, how);
    if (how->is_persistent)
        what->open(&c);
    verified_operation operation = {
        {.run = c.run, .before = scrub_bytes ? scrub_caches : NULL, .context = &c},
        prepare_collective, verify_collective};
    communication about = {what->name, how->method, group, c.ranks, bytes, moved(&c)};
    const double seconds = measure_communication(&program, &plan, &operation, &about);
    if (how->has_request && !how->is_persistent)
        measure_overlap(&c, seconds, about, operation);
    if (how->is_persistent)
        MPI_Request_free(&c.request);
    free_layout(&c);
}

static int is_chosen(const choice_list *list, const char *name)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->names[i], name) == 0)
            return 1;
    return 0;
}

/* What the largest of the asked points needs of this rank's two buffers, in bytes. */
static void find_largest_room(int rank, int ranks, size_t room[2])
{
    for (size_t o = 0; o < operations.count; o++)
        for (size_t g = 0; g < groups.count; g++) {
            const int of_group = strcmp(groups.names[g], "halves") == 0 ? ranks / 2 : ranks;
            size_t needed[2];
            find_room(find_collective(operations.names[o]), largest_size(&sizes), rank % of_group,
                      of_group, is_chosen(&how_called, "in-place"), needed);
            for (int b = 0; b < 2; b++)
                room[b] = needed[b] > room[b] ? needed[b] : room[b];
        }
}

/* A sentence where the arguments do not go together or with the world; else NULL. */
static const char *refusal(int ranks, complaint *about)
{
    if (ranks < 2)
        return "the world has one rank, and a collective operation needs at least 2";
    if (is_chosen(&groups, "halves") && (ranks < 4 || ranks % 2)) {
        complain(about, "--group halves: %d ranks have no two equal halves of at least 2 ranks",
                 ranks);
        return about->text;
    }
    if ((size_t)page_offset % sizeof(double)) {
        complain(about, "--page-offset %lld: buffers hold doubles, so it must be a multiple of "
                        "%zu bytes", page_offset, sizeof(double));
        return about->text;
    }
    for (size_t o = 0; o < operations.count; o++) {
        const collective *what = find_collective(operations.names[o]);
        for (size_t f = 0; f < how_called.count; f++)
            if (check_form(find_form(how_called.names[f]), what, about))
                return about->text;
        for (size_t s = 0; s < sizes.count; s++) {
            if (what->reduces && sizes.sizes[s] % sizeof(double)) {
                complain(about, "--sizes %zu: %s reduces doubles: the sizes must be multiples of "
                                "%zu bytes", sizes.sizes[s], what->name, sizeof(double));
                return about->text;
            }
            if (sizes.sizes[s] > SIZE_MAX / (size_t)ranks / 2) {
                complain(about, "--sizes %zu: too large for %d ranks", sizes.sizes[s], ranks);
                return about->text;
            }
            if (what->unequal && sizes.sizes[s] > (size_t)INT_MAX / (size_t)ranks) {
                complain(about, "--sizes %zu: %s has the places of %d ranks' blocks in an int",
                         sizes.sizes[s], what->name, ranks);
                return about->text;
            }
        }
    }
    return NULL;
}

/* Of a non-blocking call there are two more. */
static size_t points(void)
{
    size_t of_operation = 0;
    for (size_t f = 0; f < how_called.count; f++) {
        const form *how = find_form(how_called.names[f]);
        of_operation += how->has_request && !how->is_persistent ? 3 : 1;
    }
    return of_operation * operations.count * groups.count * sizes.count;
}

static void measure_operation(const collective *what, const form *how, MPI_Comm halves,
                              unsigned char *buffers[3])
{
    complaint about;
    if (lacks_operation(what)) {
        complain(&about, "%s: %s", what->name, lacks_operation(what));
        leave_out(&program, about.text);
        return;
    }
    for (size_t g = 0; g < groups.count; g++)
        for (size_t s = 0; s < sizes.count; s++) {
            if (what->is_barrier && s > 0)
                break; /* It has no message, so no size. */
            measure(what, how, groups.names[g],
                    strcmp(groups.names[g], "halves") == 0 ? halves : MPI_COMM_WORLD,
                    what->is_barrier ? 0 : sizes.sizes[s], buffers);
        }
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
    size_t room[2] = {0, 0};
    find_largest_room(rank, ranks, room);
    unsigned char *memory[3] = {page_aligned(room[0] + offset), page_aligned(room[1] + offset),
                                 page_aligned((size_t)scrub_bytes)};
    if (!memory[0] || !memory[1] || !memory[2])
        leave_at_once(program.name, "no memory for messages of the requested sizes");
    unsigned char *buffers[3] = {memory[0] + offset, memory[1] + offset, memory[2]};
    MPI_Comm halves;
    MPI_Comm_split(MPI_COMM_WORLD, rank * 2 >= ranks, rank, &halves);
    begin_output(&program);
    announce_points(&program, points());
    for (size_t f = 0; f < how_called.count; f++) {
        const form *how = find_form(how_called.names[f]);
        if (lacks_form(how)) {
            leave_out(&program, lacks_form(how));
            continue;
        }
        for (size_t o = 0; o < operations.count; o++)
            measure_operation(find_collective(operations.names[o]), how, halves, buffers);
    }
    report_estimate(&plan);
    MPI_Comm_free(&halves);
    for (size_t i = 0; i < 3; i++)
        free(memory[i]);
    end_program(&program, communications_reported());
}
