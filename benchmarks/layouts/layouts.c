/* Time round trips of data that lie apart in memory: described to MPI, packed by MPI, and copied by the
 * program itself. */
#include <limits.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../common/buffers.h"
#include "../common/communication.h"
#include "../common/leaving.h"
#include "../common/options.h"
#include "layout.h"

enum { TAG = 1 };
/* An `indexed` layout's places, in doubles, and a packed message's length are ints. */
#define LARGEST (INT_MAX / LAYOUT_UNIT * (size_t)LAYOUT_UNIT / 2)

static const char *const method_names[] = {"datatype", "pack", "copy", NULL};

static sampling plan;
static choice_list layouts, methods;
static size_list sizes;

static const option options[] = {
    {.name = "layout", .kind = OPTION_CHOICES, .value = &layouts, .initial = "all",
     .names = layout_names, .help = "how the data lie in memory"},
    {.name = "method", .kind = OPTION_CHOICES, .value = &methods, .initial = "all",
     .names = method_names,
     .help = "they are sent by their datatype, packed by MPI_Pack, or copied by loops"},
    {.name = "sizes", .kind = OPTION_SIZES, .value = &sizes, .initial = "1024",
     .help = "bytes of data in a message, without what lies between them: multiples of 128"},
    SAMPLING_OPTIONS(plan, "100", "barrier"),
};

static const program_description program = {
    "layouts",
    "layouts: round trips of doubles that lie apart in memory, in wyeast-records-2\n"
    "(benchmarks/FORMAT.md). An iteration is one from memory to the other rank's memory and back,\n"
    "whatever is copied on the way, by the time of rank 0.\n",
    "mpiexec -n 2 layouts --layout vector --layout struct --sizes 1024 --sizes 1048576",
    options, sizeof options / sizeof options[0]};

typedef struct {
    layout of;
    int rank;
    /* Where the data lie that are sent, and where those lie that are received. */
    unsigned char *send, *receive;
    void *packed; /* As a message without gaps. */
    int packed_bytes;
} exchange;

static void send_typed(exchange *e)
{
    MPI_Send(e->send, e->of.count, e->of.type, 1 - e->rank, TAG, MPI_COMM_WORLD);
}

static void receive_typed(exchange *e)
{
    MPI_Recv(e->receive, e->of.count, e->of.type, 1 - e->rank, TAG, MPI_COMM_WORLD,
             MPI_STATUS_IGNORE);
}

static void send_packed(exchange *e)
{
    int bytes = 0;
    MPI_Pack(e->send, e->of.count, e->of.type, e->packed, e->packed_bytes, &bytes, MPI_COMM_WORLD);
    MPI_Send(e->packed, bytes, MPI_PACKED, 1 - e->rank, TAG, MPI_COMM_WORLD);
}

static void receive_packed(exchange *e)
{
    int position = 0;
    MPI_Recv(e->packed, e->packed_bytes, MPI_PACKED, 1 - e->rank, TAG, MPI_COMM_WORLD,
             MPI_STATUS_IGNORE);
    MPI_Unpack(e->packed, e->packed_bytes, &position, e->receive, e->of.count, e->of.type,
               MPI_COMM_WORLD);
}

static void send_copied(exchange *e)
{
    e->of.kind->gather(&e->of, e->packed, e->send);
    MPI_Send(e->packed, (int)(e->of.bytes / sizeof(double)), MPI_DOUBLE, 1 - e->rank, TAG,
             MPI_COMM_WORLD);
}

static void receive_copied(exchange *e)
{
    MPI_Recv(e->packed, (int)(e->of.bytes / sizeof(double)), MPI_DOUBLE, 1 - e->rank, TAG,
             MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    e->of.kind->spread(&e->of, e->receive, e->packed);
}

static void round_trip(exchange *e, void (*send)(exchange *), void (*receive)(exchange *))
{
    if (e->rank == 0) {
        send(e);
        receive(e);
    } else {
        receive(e);
        send(e);
    }
}

static void run_datatype(void *context)
{
    round_trip(context, send_typed, receive_typed);
}

static void run_pack(void *context)
{
    round_trip(context, send_packed, receive_packed);
}

static void run_copy(void *context)
{
    round_trip(context, send_copied, receive_copied);
}

/* What lies between the data has this in it, and must keep it. */
static unsigned char between(size_t offset)
{
    return (unsigned char)(offset * 7 + 1);
}

/* The next of the data, from byte `at` of them on. Returns where they lie. */
static unsigned char *next_block(const exchange *e, unsigned char *memory, size_t at,
                                 size_t *in_a_row)
{
    return memory + e->of.kind->place(&e->of, at, in_a_row);
}

static void prepare(void *context, unsigned long long n)
{
    exchange *e = context;
    const size_t extent = e->of.kind->extent(&e->of);
    for (size_t i = 0; i < extent; i++)
        e->send[i] = e->receive[i] = between(i);
    size_t in_a_row;
    for (size_t at = 0; at < e->of.bytes; at += in_a_row) {
        unsigned char *sent = next_block(e, e->send, at, &in_a_row);
        unsigned char *received = next_block(e, e->receive, at, &in_a_row);
        for (size_t i = 0; i < in_a_row; i++) {
            sent[i] = pattern(at + i, n, e->rank);
            received[i] = (unsigned char)~pattern(at + i, n, 1 - e->rank);
        }
    }
}

static long long verify(void *context, unsigned long long n, complaint *about)
{
    exchange *e = context;
    const char *name = e->of.kind->name;
    const size_t extent = e->of.kind->extent(&e->of);
    size_t in_a_row, offset = 0;
    for (size_t at = 0; at < e->of.bytes; at += in_a_row) {
        const unsigned char *received = next_block(e, e->receive, at, &in_a_row);
        const size_t place = (size_t)(received - e->receive);
        for (; offset < place; offset++)
            if (e->receive[offset] != between(offset))
                return complain(about, "%s, %zu bytes: rank %d has byte %zu between its data "
                                       "overwritten", name, e->of.bytes, e->rank, offset);
        for (size_t i = 0; i < in_a_row; i++)
            if (received[i] != pattern(at + i, n, 1 - e->rank))
                return complain(about, "%s, %zu bytes: rank %d has wrong data from byte %zu on",
                                name, e->of.bytes, e->rank, at + i);
        offset = place + in_a_row;
    }
    for (; offset < extent; offset++)
        if (e->receive[offset] != between(offset))
            return complain(about, "%s, %zu bytes: rank %d has byte %zu behind its data overwritten",
                            name, e->of.bytes, e->rank, offset);
    return (long long)e->of.bytes;
}

static void measure(exchange *e, const char *layout_name, const char *method)
{
    char operation[40];
    snprintf(operation, sizeof operation, "layout-%s", layout_name);
    void (*run)(void *) = strcmp(method, "datatype") == 0 ? run_datatype
                          : strcmp(method, "pack") == 0   ? run_pack
                                                          : run_copy;
    verified_operation timed = {{.run = run, .context = e, .timed_by_rank_0 = 1}, prepare, verify};
    communication about = {operation, method, "pair", 2, e->of.bytes, e->of.bytes};
    measure_communication(&program, &plan, &timed, &about);
}

static void measure_layout(exchange *e, const char *name, size_t bytes)
{
    if (make_layout(&e->of, name, bytes))
        leave_at_once(program.name, "no memory for the layout of the data");
    const size_t extent = e->of.kind->extent(&e->of);
    MPI_Pack_size(e->of.count, e->of.type, MPI_COMM_WORLD, &e->packed_bytes);
    e->send = page_aligned(extent);
    e->receive = page_aligned(extent);
    const size_t packed = (size_t)e->packed_bytes;
    e->packed = page_aligned(packed > bytes ? packed : bytes);
    if (!e->send || !e->receive || !e->packed)
        leave_at_once(program.name, "no memory for messages of the requested sizes");
    for (size_t m = 0; m < methods.count; m++)
        measure(e, name, methods.names[m]);
    free(e->send);
    free(e->receive);
    free(e->packed);
    free_layout(&e->of);
}

static const char *refusal(int ranks, complaint *about)
{
    if (ranks != 2) {
        complain(about, "the world has %d ranks, and round trips are timed between exactly 2",
                 ranks);
        return about->text;
    }
    for (size_t s = 0; s < sizes.count; s++)
        if (sizes.sizes[s] % LAYOUT_UNIT || sizes.sizes[s] == 0 || sizes.sizes[s] > LARGEST) {
            complain(about, "--sizes %zu: must be a multiple of %d bytes, and at most %zu",
                     sizes.sizes[s], LAYOUT_UNIT, LARGEST);
            return about->text;
        }
    return NULL;
}

int main(int argc, char **argv)
{
    begin_program(&program, &argc, &argv);
    int ranks;
    exchange e = {0};
    MPI_Comm_rank(MPI_COMM_WORLD, &e.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    complaint about;
    const char *sentence = refusal(ranks, &about);
    if (sentence)
        leave_together(program.name, sentence, EXIT_USAGE);
    begin_output(&program);
    announce_points(&program, layouts.count * methods.count * sizes.count);
    for (size_t l = 0; l < layouts.count; l++)
        for (size_t s = 0; s < sizes.count; s++)
            measure_layout(&e, layouts.names[l], sizes.sizes[s]);
    report_estimate(&plan);
    end_program(&program, communications_reported());
}
