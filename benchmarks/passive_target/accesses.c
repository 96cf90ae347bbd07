#include "accesses.h"

#include <string.h>

#include "../common/buffers.h"
#include "../common/computation.h"
#include "../common/standard.h"

const char *const access_names[] = {"put", "get", "accumulate", "get-accumulate", "rput", "rget",
                                    "fetch-and-op", "compare-and-swap", NULL};

#if HAS_MPI3
static MPI_Request request;

/* How the calls say where the target's memory is, in bytes and in numbers. */
#define PLACE(a, offset) (a)->window.place + (MPI_Aint)(offset)
#define BYTES(a, offset)                                                                           \
    (int)(a)->bytes, MPI_BYTE, TARGET, PLACE(a, offset), (int)(a)->bytes, MPI_BYTE
#define NUMBERS(a) (int)((a)->bytes / sizeof(double)), MPI_DOUBLE
#define NUMBERS_AT(a, offset) NUMBERS(a), TARGET, PLACE(a, offset), NUMBERS(a)

static void start_put(access *a, size_t offset)
{
    MPI_Put(a->given + offset, BYTES(a, offset), a->window.handle);
}

static void start_get(access *a, size_t offset)
{
    MPI_Get(a->taken + offset, BYTES(a, offset), a->window.handle);
}

static void start_accumulate(access *a, size_t offset)
{
    MPI_Accumulate(a->given + offset, NUMBERS_AT(a, offset), MPI_SUM, a->window.handle);
}

static void start_get_accumulate(access *a, size_t offset)
{
    MPI_Get_accumulate(a->given + offset, NUMBERS(a), a->taken + offset, NUMBERS_AT(a, offset),
                       MPI_SUM, a->window.handle);
}

static void start_rput(access *a, size_t offset)
{
    MPI_Rput(a->given + offset, BYTES(a, offset), a->window.handle, &request);
}

static void start_rget(access *a, size_t offset)
{
    MPI_Rget(a->taken + offset, BYTES(a, offset), a->window.handle, &request);
}

static void start_fetch_and_op(access *a, size_t offset)
{
    MPI_Fetch_and_op(a->given + offset, a->taken + offset, MPI_LONG_LONG, TARGET, PLACE(a, offset),
                     MPI_SUM, a->window.handle);
}

static void start_compare_and_swap(access *a, size_t offset)
{
    /* One that finds something else than it expects writes nothing, and may take less time. */
    const unsigned char *brought = a->swapped ? a->expected : a->given;
    const unsigned char *there = a->swapped ? a->given : a->expected;
    MPI_Compare_and_swap(brought + offset, there + offset, a->taken + offset, MPI_LONG_LONG, TARGET,
                         PLACE(a, offset), a->window.handle);
}

static const access_kind kinds[] = {
    {.name = "put", .writes = 1, .start = start_put},
    {.name = "get", .fetches = 1, .start = start_get},
    {.name = "accumulate", .writes = 1, .adds = 1, .start = start_accumulate},
    {.name = "get-accumulate", .writes = 1, .fetches = 1, .adds = 1,
     .start = start_get_accumulate},
    {.name = "rput", .writes = 1, .start = start_rput, .has_request = 1},
    {.name = "rget", .fetches = 1, .start = start_rget, .has_request = 1},
    {.name = "fetch-and-op", .writes = 1, .fetches = 1, .adds = 1,
     .fixed_bytes = sizeof(long long), .start = start_fetch_and_op},
    {.name = "compare-and-swap", .writes = 1, .fetches = 1, .fixed_bytes = sizeof(long long),
     .start = start_compare_and_swap},
};

const access_kind *find_access(const char *name)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(kinds[i].name, name) == 0)
            return &kinds[i];
    return NULL;
}

void run_access(void *context)
{
    access *a = context;
    if (a->rank == TARGET) {
        compute(a->operations);
        return;
    }
    for (size_t i = 0; i < a->in_a_row; i++) {
        a->kind->start(a, i * a->bytes);
        if (a->kind->has_request)
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        else
            MPI_Win_flush(TARGET, a->window.handle);
    }
    a->swapped = !a->swapped;
}

void settle_accesses(void *context)
{
    const access *a = context;
    if (a->rank == ORIGIN)
        MPI_Win_flush(TARGET, a->window.handle);
}

/* Whole numbers that every order of sums gives alike: as doubles, or of accesses to one as themselves. */
static void put_number(const access *a, unsigned char *buffer, size_t i, long long number)
{
    const double as_double = (double)number;
    if (a->kind->fixed_bytes)
        memcpy(buffer + i * sizeof number, &number, sizeof number);
    else
        memcpy(buffer + i * sizeof as_double, &as_double, sizeof as_double);
}

static long long number_at(const access *a, const unsigned char *buffer, size_t i)
{
    long long number;
    double as_double;
    if (a->kind->fixed_bytes) {
        memcpy(&number, buffer + i * sizeof number, sizeof number);
        return number;
    }
    memcpy(&as_double, buffer + i * sizeof as_double, sizeof as_double);
    return (long long)as_double;
}

static int is_of_numbers(const access *a)
{
    return a->kind->adds || a->kind->fixed_bytes;
}

static size_t all_bytes(const access *a)
{
    return a->in_a_row * a->bytes;
}

static size_t numbers(const access *a)
{
    return all_bytes(a) / sizeof(double);
}

/* What the target has in the end: the sum, or of a swap what the origin brought. */
static long long number_left(const access *a, size_t i, unsigned long long n)
{
    const long long brought = pattern(i, n, ORIGIN);
    return a->kind->adds ? brought + pattern(i, n, TARGET) : brought;
}

static void prepare_numbers(access *a, unsigned long long n)
{
    for (size_t i = 0; i < numbers(a); i++) {
        put_number(a, a->given, i, pattern(i, n, ORIGIN));
        put_number(a, a->window.memory, i, pattern(i, n, TARGET));
        put_number(a, a->taken, i, -1);
        put_number(a, a->expected, i, pattern(i, n, TARGET));
    }
}

/* The target's memory is written by itself, between two accesses of the origin. */
void prepare_access(void *context, unsigned long long n)
{
    access *a = context;
    a->swapped = 0;
    MPI_Win_sync(a->window.handle);
    if (is_of_numbers(a)) {
        prepare_numbers(a, n);
    } else {
        fill_pattern(a->given, all_bytes(a), n, ORIGIN);
        fill_wrong(a->taken, all_bytes(a), n, TARGET);
        if (a->kind->writes)
            fill_wrong(a->window.memory, all_bytes(a), n, ORIGIN);
        else
            fill_pattern(a->window.memory, all_bytes(a), n, TARGET);
    }
    MPI_Win_sync(a->window.handle);
}

static long long verify_numbers(const access *a, unsigned long long n, complaint *about)
{
    const unsigned char *found = a->rank == TARGET ? a->window.memory : a->taken;
    for (size_t i = 0; i < numbers(a); i++) {
        const long long right = a->rank == TARGET ? number_left(a, i, n) : pattern(i, n, TARGET);
        if (number_at(a, found, i) != right)
            return complain(about, "%s, %s, %zu bytes: number %zu is %lld at rank %d, right is %lld",
                            a->kind->name, a->window.kind, a->bytes, i, number_at(a, found, i),
                            a->rank, right);
    }
    return (long long)all_bytes(a);
}

long long verify_access(void *context, unsigned long long n, complaint *about)
{
    access *a = context;
    MPI_Barrier(MPI_COMM_WORLD); /* The target does not know when it is over. */
    MPI_Win_sync(a->window.handle);
    if (a->rank == TARGET ? !a->kind->writes : !a->kind->fetches)
        return 0;
    if (is_of_numbers(a))
        return verify_numbers(a, n, about);
    const unsigned char *found = a->rank == TARGET ? a->window.memory : a->taken;
    const long long wrong = find_difference(found, all_bytes(a), n, a->rank == TARGET ? ORIGIN : TARGET);
    return wrong < 0 ? (long long)all_bytes(a)
                     : complain(about, "%s, %s, %zu bytes: rank %d has wrong data from byte %lld on",
                                a->kind->name, a->window.kind, a->bytes, a->rank, wrong);
}
#else
const access_kind *find_access(const char *name)
{
    (void)name;
    return NULL;
}

void run_access(void *context)
{
    (void)context;
}

void settle_accesses(void *context)
{
    (void)context;
}

void prepare_access(void *context, unsigned long long n)
{
    (void)context;
    (void)n;
}

long long verify_access(void *context, unsigned long long n, complaint *about)
{
    (void)context;
    (void)n;
    return complain(about, "this MPI has no MPI_Win_lock_all");
}
#endif
