/* Time messages that may have more elements than an int counts: by the calls with large counts, and by
 * what programs do without them. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../common/buffers.h"
#include "../common/communication.h"
#include "../common/leaving.h"
#include "../common/options.h"
#include "long_messages.h"

static const char *const operation_names[] = {"round-trip", "bcast", "allreduce-bxor", NULL};

static sampling plan;
static choice_list operations, methods;
static size_list sizes;

static const option options[] = {
    {.name = "operation", .kind = OPTION_CHOICES, .value = &operations, .initial = "all",
     .names = operation_names, .help = "what is timed, of bytes"},
    {.name = "method", .kind = OPTION_CHOICES, .value = &methods, .initial = "all",
     .names = counting_names,
     .help = "calls with large counts, a type that has all bytes, or pieces of 1 GiB"},
    {.name = "sizes", .kind = OPTION_SIZES, .value = &sizes, .initial = "8", .most = 1LL << 40,
     .help = "message sizes in bytes; an int counts up to 2147483647"},
    SAMPLING_OPTIONS(plan, "100", "barrier"),
};

static const program_description program = {
    "big_counts",
    "big_counts: messages of any length between two ranks, in wyeast-records-2\n"
    "(benchmarks/FORMAT.md). An iteration is a round trip or one collective operation.\n",
    "mpiexec -n 2 big_counts --sizes 8 --sizes 2147483656 --iterations 3",
    options, sizeof options / sizeof options[0]};

static void run_round_trip(void *context)
{
    long_message *m = context;
    if (m->rank == 0) {
        m->how->send(m);
        m->how->receive(m);
    } else {
        m->how->receive(m);
        m->how->send(m);
    }
}

static void run_broadcast(void *context)
{
    long_message *m = context;
    m->how->broadcast(m);
}

static void run_reduction(void *context)
{
    long_message *m = context;
    m->how->reduce(m);
}

static void prepare(void *context, unsigned long long n)
{
    long_message *m = context;
    fill_pattern(m->given, m->bytes, n, m->rank);
    fill_wrong(m->taken, m->bytes, n, 1 - m->rank);
}

static long long say_whether(const long_message *m, long long wrong, complaint *about)
{
    return wrong < 0 ? (long long)m->bytes
                     : complain(about, "%s, %zu bytes: rank %d has wrong data from byte %lld on",
                                m->how->name, m->bytes, m->rank, wrong);
}

static long long verify_round_trip(void *context, unsigned long long n, complaint *about)
{
    const long_message *m = context;
    return say_whether(m, find_difference(m->taken, m->bytes, n, 1 - m->rank), about);
}

static long long verify_broadcast(void *context, unsigned long long n, complaint *about)
{
    const long_message *m = context;
    return m->rank == 0 ? 0 : verify_round_trip(context, n, about);
}

static long long verify_reduction(void *context, unsigned long long n, complaint *about)
{
    const long_message *m = context;
    long long wrong = -1;
    for (size_t i = 0; i < m->bytes && wrong < 0; i++)
        if (m->taken[i] != (pattern(i, n, 0) ^ pattern(i, n, 1)))
            wrong = (long long)i;
    return say_whether(m, wrong, about);
}

typedef struct {
    const char *name;
    void (*run)(void *context);
    long long (*verify)(void *context, unsigned long long n, complaint *about);
    int from_all; /* Whether both ranks give something, or rank 0 alone. */
    int timed_by_rank_0;
} long_operation;

static const long_operation all_operations[] = {
    {"round-trip", run_round_trip, verify_round_trip, 1, 1},
    {"bcast", run_broadcast, verify_broadcast, 0, 0},
    {"allreduce-bxor", run_reduction, verify_reduction, 1, 0},
};

static const long_operation *find_operation(const char *name)
{
    size_t i = 0;
    while (strcmp(all_operations[i].name, name) != 0)
        i++;
    return &all_operations[i];
}

/* MPI has no operations on types of a program's own. */
static int goes(const long_operation *what, const counting *how)
{
    return what->run != run_reduction || how->reduce != NULL;
}

static void measure(long_message *m, const long_operation *what)
{
    char operation[40];
    snprintf(operation, sizeof operation, "long-%s", what->name);
    verified_operation timed = {
        {.run = what->run, .context = m, .timed_by_rank_0 = what->timed_by_rank_0}, prepare,
        what->verify};
    communication about = {operation, m->how->name, "pair", 2, m->bytes,
                           what->from_all || m->rank == 0 ? m->bytes : 0};
    measure_communication(&program, &plan, &timed, &about);
}

static void measure_method(long_message *m, const char *name)
{
    m->how = find_counting(name);
    if (!m->how->send) {
        complaint about;
        complain(&about, "%s: this MPI has no calls with large counts", name);
        leave_out(&program, about.text);
        return;
    }
    for (size_t o = 0; o < operations.count; o++)
        for (size_t s = 0; s < sizes.count && goes(find_operation(operations.names[o]), m->how);
             s++) {
            m->bytes = sizes.sizes[s];
            make_type(m);
            measure(m, find_operation(operations.names[o]));
            MPI_Type_free(&m->all);
        }
}

int main(int argc, char **argv)
{
    begin_program(&program, &argc, &argv);
    int ranks;
    long_message m = {0};
    MPI_Comm_rank(MPI_COMM_WORLD, &m.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    complaint about;
    if (ranks != 2) {
        complain(&about, "the world has %d ranks, and long messages are timed between exactly 2",
                 ranks);
        leave_together(program.name, about.text, EXIT_USAGE);
    }
    const size_t room = largest_size(&sizes);
    if (room <= SIZE_MAX / 4) {
        m.given = page_aligned(room);
        m.taken = page_aligned(room);
    }
    if (!m.given || !m.taken)
        leave_at_once(program.name, "no memory for messages of the requested sizes");
    begin_output(&program);
    size_t points = 0;
    for (size_t i = 0; i < methods.count * operations.count; i++)
        if (goes(find_operation(operations.names[i % operations.count]),
                 find_counting(methods.names[i / operations.count])))
            points++;
    announce_points(&program, points * sizes.count);
    for (size_t i = 0; i < methods.count; i++)
        measure_method(&m, methods.names[i]);
    report_estimate(&plan);
    free(m.given);
    free(m.taken);
    end_program(&program, communications_reported());
}
