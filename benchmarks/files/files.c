/* Time MPI's writing and reading of one file by all ranks: each by itself or together, parts one after
 * the other or interleaved, with and without bringing them to the storage. */
#include <errno.h>
#include <limits.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../common/buffers.h"
#include "../common/communication.h"
#include "../common/leaving.h"
#include "../common/options.h"
#include "shared_file.h"

static const char *const operation_names[] = {"write", "read", "write-all", "read-all", NULL};
static const char *const arrangement_names[] = {"segments", "interleaved", NULL};

static sampling plan;
static choice_list operations, arrangements;
static size_list sizes;
static const char *folder;
static int synchronises;

static const option options[] = {
    {.name = "folder", .kind = OPTION_TEXT, .value = &folder, .initial = ".",
     .help = "where the file is made, the same for all ranks"},
    {.name = "operation", .kind = OPTION_CHOICES, .value = &operations, .initial = "all",
     .names = operation_names, .help = "each rank by itself, or (-all) all ranks in one call"},
    {.name = "arrangement", .kind = OPTION_CHOICES, .value = &arrangements, .initial = "all",
     .names = arrangement_names,
     .help = "the ranks' parts one after the other, or blocks of 1024 bytes in turn"},
    {.name = "sync", .kind = OPTION_FLAG, .value = &synchronises,
     .help = "an iteration that writes ends with MPI_File_sync"},
    {.name = "sizes", .kind = OPTION_SIZES, .value = &sizes, .initial = "1048576",
     .help = "bytes of a rank's part; interleaved they are multiples of 1024"},
    SAMPLING_OPTIONS(plan, "20", "barrier"),
};

static const program_description program = {
    "files",
    "files: writing and reading one file by all ranks, in wyeast-records-2\n"
    "(benchmarks/FORMAT.md). An iteration writes all parts or reads them, each again in the same\n"
    "place; a rank reads what the next rank wrote.\n",
    "mpiexec -n 2 files --folder /scratch --operation write-all --sizes 1048576 --sync",
    options, sizeof options / sizeof options[0]};

typedef struct {
    shared_file file;
    int together, reads;
    unsigned char *given, *taken;
} file_access;

static int next_rank(const file_access *a)
{
    return (a->file.rank + 1) % a->file.ranks;
}

static void run_write(void *context)
{
    file_access *a = context;
    write_part(&a->file, a->given, a->together);
    if (synchronises)
        synchronise_file(&a->file);
}

static void run_read(void *context)
{
    file_access *a = context;
    read_part(&a->file, a->taken, a->together);
}

/* What was written by one rank is there for another one between these two calls of both. */
static void see_what_was_written(file_access *a)
{
    synchronise_file(&a->file);
    MPI_Barrier(MPI_COMM_WORLD);
    synchronise_file(&a->file);
}

/* Where a rank is to write, something else stands already; what it is to read, the next rank writes. */
static void prepare(void *context, unsigned long long n)
{
    file_access *a = context;
    look_at_part(&a->file, a->file.rank);
    if (a->reads)
        fill_pattern(a->given, a->file.bytes, n, a->file.rank);
    else
        fill_wrong(a->given, a->file.bytes, n, a->file.rank);
    write_part(&a->file, a->given, 0);
    see_what_was_written(a);
    fill_pattern(a->given, a->file.bytes, n, a->file.rank);
    fill_wrong(a->taken, a->file.bytes, n, next_rank(a));
    if (a->reads)
        look_at_part(&a->file, next_rank(a));
}

static long long verify(void *context, unsigned long long n, complaint *about)
{
    file_access *a = context;
    if (!a->reads) {
        see_what_was_written(a);
        look_at_part(&a->file, next_rank(a));
        read_part(&a->file, a->taken, 0);
        look_at_part(&a->file, a->file.rank);
    }
    const long long wrong = find_difference(a->taken, a->file.bytes, n, next_rank(a));
    return wrong < 0 ? (long long)a->file.bytes
                     : complain(about, "%zu bytes: rank %d finds rank %d's part of the file wrong "
                                       "from byte %lld on", a->file.bytes, a->file.rank,
                                next_rank(a), wrong);
}

static void measure(file_access *a, const char *name)
{
    char operation[40], method[40];
    a->reads = strncmp(name, "read", 4) == 0;
    a->together = strstr(name, "-all") != NULL;
    snprintf(operation, sizeof operation, "file-%s", name);
    snprintf(method, sizeof method, "%s%s", a->file.interleaved ? "interleaved" : "segments",
             synchronises && !a->reads ? " synchronised" : "");
    verified_operation timed = {{.run = a->reads ? run_read : run_write, .context = a}, prepare,
                                verify};
    communication about = {operation, method, "world", a->file.ranks, a->file.bytes,
                           a->file.bytes};
    open_file(&a->file, folder);
    measure_communication(&program, &plan, &timed, &about);
    close_file(&a->file);
}

static int is_chosen(const choice_list *list, const char *name)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->names[i], name) == 0)
            return 1;
    return 0;
}

static const char *refusal(int ranks, complaint *about)
{
    if (!HAS_FILES)
        return "this MPI has no MPI_File_open";
    if (ranks < 2)
        return "the world has one rank, and each reads what another one wrote";
    for (size_t s = 0; s < sizes.count; s++) {
        if (sizes.sizes[s] > INT_MAX) {
            complain(about, "--sizes %zu: the calls count bytes in an int", sizes.sizes[s]);
            return about->text;
        }
        if (sizes.sizes[s] % FILE_BLOCK && is_chosen(&arrangements, "interleaved")) {
            complain(about, "--sizes %zu: interleaved parts are multiples of %d bytes",
                     sizes.sizes[s], FILE_BLOCK);
            return about->text;
        }
    }
    return NULL;
}

int main(int argc, char **argv)
{
    begin_program(&program, &argc, &argv);
    file_access a = {.file = {.program = program.name}};
    MPI_Comm_rank(MPI_COMM_WORLD, &a.file.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &a.file.ranks);
    complaint about;
    const char *sentence = refusal(a.file.ranks, &about);
    if (sentence)
        leave_together(program.name, sentence, EXIT_USAGE);
    complain(&about, "--folder %.200s: rank %d cannot write there: %s", folder, a.file.rank,
             access(folder, W_OK | X_OK) ? strerror(errno) : "");
    refuse_together(&program, access(folder, W_OK | X_OK) != 0, &about);
    a.given = page_aligned(largest_size(&sizes));
    a.taken = page_aligned(largest_size(&sizes));
    if (!a.given || !a.taken)
        leave_at_once(program.name, "no memory for parts of the requested sizes");
    begin_output(&program);
    announce_points(&program, operations.count * arrangements.count * sizes.count);
    for (size_t r = 0; r < arrangements.count; r++)
        for (size_t o = 0; o < operations.count; o++)
            for (size_t s = 0; s < sizes.count; s++) {
                a.file.interleaved = strcmp(arrangements.names[r], "interleaved") == 0;
                a.file.bytes = sizes.sizes[s];
                measure(&a, operations.names[o]);
            }
    report_estimate(&plan);
    free(a.given);
    free(a.taken);
    end_program(&program, communications_reported());
}
