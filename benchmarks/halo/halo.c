/* Time the exchange of a lattice's borders in 1 to 4 dimensions, by the calls that MPI has for it:
 * the Cartesian test of NTNU's SimpleBench, and what came after it. */
#include <limits.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../common/communication.h"
#include "../common/leaving.h"
#include "../common/options.h"
#include "border_exchange.h"

static sampling plan;
static choice_list methods;
static size_list dimensions, extents;
static int whole, periodic;

static const option options[] = {
    {.name = "method", .kind = OPTION_CHOICES, .value = &methods, .initial = "isend-irecv",
     .names = exchange_names, .help = "by which calls; `create` makes the ranks' grid, `datatypes` the faces' datatypes"},
    {.name = "dimensions", .kind = OPTION_SIZES, .value = &dimensions, .initial = "2",
     .help = "of the lattice: 1 to 4"},
    {.name = "extent", .kind = OPTION_SIZES, .value = &extents, .initial = "64",
     .help = "points in each dimension, of one rank's part"},
    {.name = "whole", .kind = OPTION_FLAG, .value = &whole,
     .help = "extents are of the whole lattice, and the ranks must divide it"},
    {.name = "periodic", .kind = OPTION_FLAG, .value = &periodic,
     .help = "the first and the last rank of a dimension are neighbours"},
    SAMPLING_OPTIONS(plan, "100", "barrier"),
};

static const program_description program = {
    "halo",
    "halo: the exchange of a lattice's borders, in wyeast-records-2 (benchmarks/FORMAT.md).\n"
    "Faces are derived datatypes of doubles; edges and corners are not exchanged.\n",
    "mpiexec -n 4 halo --dimensions 2 --extent 1000 --method all",
    options, sizeof options / sizeof options[0]};

typedef struct {
    border_exchange exchange; /* First, since the method's own functions are given this too. */
    const exchange_method *method;
} measured_exchange;

static void prepare(void *context, unsigned long long n)
{
    measured_exchange *m = context;
    if (!m->method->verify)
        fill_lattice(m->exchange.lattice, n);
}

static long long verify(void *context, unsigned long long n, complaint *about)
{
    const measured_exchange *m = context;
    return m->method->verify ? m->method->verify(&m->exchange, about)
                             : verify_border(m->exchange.lattice, n, about);
}

/* The ranks' grid as text, and the bytes of the largest face. */
static size_t describe(const lattice *l, char *group, size_t room)
{
    size_t used = 0, most = 0;
    for (int d = 0; d < l->dimensions && used < room; d++)
        used += (size_t)snprintf(group + used, room - used, "%s%d", d ? "x" : "", l->grid[d]);
    for (int face = 0; face < l->faces; face++)
        most = l->face_points[face] > most ? l->face_points[face] : most;
    if (used < room)
        snprintf(group + used, room - used, "%s", l->periodic ? " periodic" : "");
    return most * sizeof(double);
}

/* Whether the method makes something that does not depend on the extent. */
static int made_once(const exchange_method *method)
{
    return method->verify && !method->of_extent;
}

static void measure(const exchange_method *method, lattice *l)
{
    int ranks;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    measured_exchange m = {{.lattice = l}, method};
    char group[80];
    const size_t bytes = describe(l, group, sizeof group);
    const int makes = method->verify != NULL;
    if (method->open)
        method->open(&m.exchange);
    verified_operation operation = {{.run = method->run, .context = &m}, prepare, verify};
    communication about = {makes ? "cartesian" : "halo", method->name, group, ranks,
                           made_once(method) ? 0 : bytes,
                           makes ? 0 : bytes_for_others(l)};
    measure_communication(&program, &plan, &operation, &about);
    if (method->close)
        method->close(&m.exchange);
}

static int size_of(lattice *l, size_t d, size_t x, complaint *about)
{
    return size_lattice(l, (int)dimensions.sizes[d], extents.sizes[x], whole, periodic, about);
}

int main(int argc, char **argv)
{
    begin_program(&program, &argc, &argv);
    complaint about;
    int ranks;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks < 2)
        leave_together(program.name, "the world has one rank, and an exchange needs at least 2",
                       EXIT_USAGE);
    for (size_t d = 0; d < dimensions.count; d++)
        if (dimensions.sizes[d] < 1 || dimensions.sizes[d] > MOST_DIMENSIONS) {
            complain(&about, "--dimensions %zu: must be from 1 to %d", dimensions.sizes[d],
                     MOST_DIMENSIONS);
            leave_together(program.name, about.text, EXIT_USAGE);
        }
    lattice l;
    for (size_t d = 0; d < dimensions.count; d++)
        for (size_t x = 0; x < extents.count; x++)
            if (size_of(&l, d, x, &about))
                leave_together(program.name, about.text, EXIT_USAGE);
    begin_output(&program);
    size_t once = 0;
    for (size_t m = 0; m < methods.count; m++)
        once += made_once(find_exchange(methods.names[m])) ? 1 : 0;
    announce_points(&program, dimensions.count * (extents.count * (methods.count - once) + once));
    for (size_t d = 0; d < dimensions.count; d++)
        for (size_t x = 0; x < extents.count; x++) {
            if (size_of(&l, d, x, &about) || make_lattice(&l, &about))
                leave_together(program.name, about.text, EXIT_FAILED);
            for (size_t m = 0; m < methods.count; m++) {
                const exchange_method *method = find_exchange(methods.names[m]);
                /* What the extent does not change is measured with the first. */
                if (x > 0 && made_once(method))
                    continue;
                const char *lacks = exchange_lacks(method);
                if (!lacks) {
                    measure(method, &l);
                    continue;
                }
                complain(&about, "%s: %s", method->name, lacks);
                leave_out(&program, about.text);
            }
            release_lattice(&l);
        }
    report_estimate(&plan);
    end_program(&program, communications_reported());
}
