#include "benchmark.h"

#include <limits.h>
#include <math.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../common/buffers.h"
#include "../common/clock.h"
#include "../common/disturbances.h"
#include "../common/placement.h"
#include "../common/ranks_alike.h"
#include "../common/record_pieces.h"
#include "../common/summary.h"
#include "../common/waiting.h"
#include "../common/written.h"
#include "../hpl/node_memory.h"

const char *chosen_class;
const char *const class_names[] = {"S", "W", "A", "B", "C", "D", "E", NULL};
double least_seconds;

size_t class_index(void)
{
    size_t index = 0;
    while (index + 1 < CLASSES && strcmp(class_names[index], chosen_class) != 0)
        index++;
    return index;
}

/* NPB's own output does not say where the ranks are; without it no world is proved. */
static void print_hosts(const program_description *program)
{
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    rank_place here;
    find_place(&here);
    char *hosts = rank == 0 ? reserve(program, (size_t)ranks, sizeof here.host) : NULL;
    MPI_Gather(here.host, (int)sizeof here.host, MPI_CHAR, hosts, (int)sizeof here.host, MPI_CHAR,
               0, MPI_COMM_WORLD);
    if (rank != 0)
        return;
    printf(" Hosts           =");
    for (int i = 0; i < ranks; i++)
        printf(" %s", hosts + (size_t)i * sizeof here.host);
    putchar('\n');
    free(hosts);
}

void begin_benchmark(const program_description *program, const char *benchmark, int *argc,
                     char ***argv)
{
    begin_program(program, argc, argv);
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0)
        printf("\n\n %s of the NAS Parallel Benchmarks, class %s, by Wyeast %s\n\n", benchmark,
               chosen_class, PROGRAM_VERSION);
    print_hosts(program);
    begin_waiting();
}

/* What the ranks of a host ask for together, and how far that is above what the host may give. */
typedef struct {
    double lacking;
    int rank;
} lack;

void refuse_too_much(const program_description *program, demand own)
{
    int ranks;
    lack mine = {0.0, 0}, worst;
    double counted = 0.0, asked = 0.0;
    complaint about = {""};
    MPI_Comm_rank(MPI_COMM_WORLD, &mine.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Allreduce(&own.most_counted, &counted, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (counted > INT_MAX) {
        complain(&about, "class %s on %d rank(s): one counts %.0f elements for MPI in one call, more "
                 "than the %d that it can: use more ranks", chosen_class, ranks, counted, INT_MAX);
        leave_together(program->name, about.text, EXIT_USAGE);
    }
    rank_place here;
    ranks_alike of_host;
    find_place(&here);
    find_alike(&of_host, here.host);
    MPI_Allreduce(&own.bytes, &asked, 1, MPI_DOUBLE, MPI_SUM, of_host.sharing);
    free_alike(&of_host);
    const double allowed = memory_of_node();
    mine.lacking = asked - allowed;
    MPI_Allreduce(&mine, &worst, 1, MPI_DOUBLE_INT, MPI_MAXLOC, MPI_COMM_WORLD);
    if (worst.lacking <= 0.0)
        return;
    complain(&about, "class %s on %d rank(s) needs at least %.2f GB of memory on host %s, which has "
             "%.2f GB: use more nodes", chosen_class, ranks, asked / 1e9, here.host, allowed / 1e9);
    MPI_Bcast(about.text, (int)sizeof about.text, MPI_CHAR, worst.rank, MPI_COMM_WORLD);
    leave_together(program->name, about.text, EXIT_USAGE);
}

static void *demanded(const program_description *program, void *memory, size_t count, size_t bytes)
{
    if (!memory) {
        complaint about;
        complain(&about, "no memory for %zu times %zu bytes", count, bytes);
        leave_at_once(program->name, about.text);
    }
    return memory;
}

void *reserve(const program_description *program, size_t count, size_t bytes)
{
    const int fits = count <= SIZE_MAX / bytes;
    void *memory = demanded(program, fits ? malloc(count ? count * bytes : 1) : NULL, count, bytes);
    memset(memory, 0, count * bytes);
    return memory;
}

void *reserve_huge(const program_description *program, size_t count, size_t bytes)
{
    const int fits = count <= SIZE_MAX / bytes;
    return demanded(program, fits ? on_huge_pages(count * bytes) : NULL, count, bytes);
}

/* The seconds that the section takes now, by the slowest rank; on rank 0. */
static double seconds_of_section(const timed_part *part, void *solver)
{
    MPI_Barrier(MPI_COMM_WORLD);
    const double began = seconds_now();
    part->section(solver);
    double mine = seconds_now() - began, longest = 0.0;
    MPI_Reduce(&mine, &longest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    return longest;
}

void time_section(const timed_part *part, void *solver, section_times *times, verification *v)
{
    double in_all = 0.0;
    int again = 1;
    times->count = 0;
    while (again) {
        if (part->prepare)
            part->prepare(solver);
        const double seconds = seconds_of_section(part, solver);
        times->seconds[times->count++] = seconds;
        in_all += seconds;
        part->verify(solver, v);
        /* An even number has no middle. Rank 0 alone knows how long the slowest rank took. */
        again = times->count < MOST_TIMES && (in_all < least_seconds || times->count % 2 == 0);
        MPI_Bcast(&again, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
}

static double median(const section_times *times)
{
    double scratch[MOST_TIMES];
    return summarise(times->seconds, (size_t)times->count, scratch).median;
}

/* Write what is wrong; the sentence of the first goes to stderr at the end. */
static void report_wrong(verification *v, const complaint *about)
{
    if (v->failed++ == 0)
        v->first = *about;
    printf(" %s\n", about->text);
}

void verify_real(verification *v, const char *what, double found, double expected,
                 double tolerance)
{
    v->compared++;
    if (fabs((found - expected) / expected) <= tolerance)
        return;
    complaint about;
    complain(&about, "%s is %.13e, expected is %.13e within %g (%s)", what, found, expected,
             tolerance, reference_source);
    report_wrong(v, &about);
}

void verify_complex(verification *v, const char *what, const double found[2],
                    const double expected[2], double tolerance)
{
    v->compared++;
    const double off = hypot(found[0] - expected[0], found[1] - expected[1]);
    if (off / hypot(expected[0], expected[1]) <= tolerance)
        return;
    complaint about;
    complain(&about, "%s is %.12e %+.12e i, expected is %.12e %+.12e i within %g (%s)", what,
             found[0], found[1], expected[0], expected[1], tolerance, reference_source);
    report_wrong(v, &about);
}

void verify_whole(verification *v, const char *what, long long found, long long expected)
{
    v->compared++;
    if (found == expected)
        return;
    complaint about;
    complain(&about, "%s is %lld, expected is %lld (%s)", what, found, expected, reference_source);
    report_wrong(v, &about);
}

static void print_run(const run_summary *s, const section_times *times, int ranks, int right)
{
    /* Where NPB has two decimals, short runs need more. */
    const double seconds = median(times), rate = seconds > 0 ? s->operations / seconds / 1e6 : 0.0;
    printf("\n\n %s Benchmark Completed.\n", s->benchmark);
    printf(" Class           = %24s\n", chosen_class);
    if (s->size[1])
        printf(" Size            =           %4lldx%4lldx%4lld\n", s->size[0], s->size[1],
               s->size[2]);
    else
        printf(" Size            = %24lld\n", s->size[0]);
    printf(" Iterations      = %24d\n", s->iterations);
    printf(" Time in seconds = %24.9f\n", seconds);
    if (times->count > 1) {
        printf(" Each time       =");
        for (int i = 0; i < times->count; i++)
            printf(" %.9f", times->seconds[i]);
        putchar('\n');
    }
    printf(" Total processes = %24d\n", ranks);
    printf(" Mop/s total     = %24.6f\n", rate);
    printf(" Mop/s/process   = %24.6f\n", rate / ranks);
    printf(" Operation type  = %24s\n", s->operation_type);
    printf(" Verification    = %24s\n", right ? "SUCCESSFUL" : "UNSUCCESSFUL");
    printf(" Version         = %24s\n", "Wyeast " PROGRAM_VERSION);
}

void end_benchmark(const program_description *program, const run_summary *summary,
                   const section_times *times, const verification *verified)
{
    int rank, ranks, code = EXIT_SOUND;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const rank_ends ends = ends_of_all_ranks();
    const disturbances counted = disturbances_of_all_ranks();
    if (rank == 0) {
        int right = verified->compared > 0 && verified->failed == 0;
        print_run(summary, times, ranks, right);
        print_disturbances(stdout, counted, ends);
        if (!right)
            fprintf(stderr, "%s: wrong answer: %s\n", program->name,
                    verified->failed ? verified->first.text : "nothing was compared");
        code = right ? EXIT_SOUND : EXIT_FAILED;
        if (see_output_written(program->name))
            code = EXIT_FAILED;
    }
    free(ends.of);
    free_options(program);
    leave_with_code_of_rank_0(code);
}
