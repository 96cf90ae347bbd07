/* A pure gauge theory of SU(3) on a four-dimensional lattice, by molecular dynamics: what su3_rmd of
 * MILC computes, which Kearns measured in 2003 (section 4.2), written from the physics. */
#include <limits.h>
#include <math.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "../common/clock.h"
#include "../common/communication.h"
#include "../common/leaving.h"
#include "../common/options.h"
#include "checkpoint.h"
#include "proofs.h"
#include "report.h"

enum { LARGEST_SIDE = 4096 };

static long long sides[DIMENSIONS], trajectories, steps, warmups, seed;
static double beta, step_size;
static const char *start, *integrator_name, *exchange, *grid, *precision, *instructions;
static const char *checkpoint, *restart, *proof;
static int accept, raw;

static const char *const start_names[] = {"cold", "hot", NULL};
static const char *const precision_names[] = {"double", "single", NULL};

#define SIDE(letter, number)                                                                       \
    {.name = "n" letter, .kind = OPTION_NUMBER, .value = &sides[number], .initial = "8",           \
     .least = 2, .most = LARGEST_SIDE, .help = "sites of the lattice in " letter}

static const option options[] = {
    SIDE("x", 0),
    SIDE("y", 1),
    SIDE("z", 2),
    SIDE("t", 3),
    {.name = "beta", .kind = OPTION_FRACTION, .value = &beta, .initial = "5.6", .most = 1000,
     .help = "inverse coupling, 6 / g^2"},
    {.name = "trajectories", .kind = OPTION_NUMBER, .value = &trajectories, .initial = "10",
     .least = 1, .most = 10000000, .help = "timed and measured"},
    {.name = "warm-ups", .kind = OPTION_NUMBER, .value = &warmups, .initial = "0", .least = 0,
     .most = 10000000, .help = "trajectories before them, always accepted"},
    {.name = "steps", .kind = OPTION_NUMBER, .value = &steps, .initial = "10", .least = 1,
     .most = 1000000, .help = "of a trajectory"},
    {.name = "step-size", .kind = OPTION_FRACTION, .value = &step_size, .initial = "0.05",
     .most = 1, .help = "of a step, in units of time"},
    {.name = "integrator", .kind = OPTION_CHOICE, .value = &integrator_name,
     .initial = "leapfrog", .names = integrator_names, .help = "how a step is composed"},
    {.name = "accept", .kind = OPTION_FLAG, .value = &accept,
     .help = "accept a trajectory by Metropolis' rule: hybrid Monte Carlo"},
    {.name = "seed", .kind = OPTION_NUMBER, .value = &seed, .initial = "1", .least = 0,
     .most = LLONG_MAX, .help = "of the random numbers"},
    {.name = "start", .kind = OPTION_CHOICE, .value = &start, .initial = "cold",
     .names = start_names, .help = "all links one, or random"},
    {.name = "exchange", .kind = OPTION_CHOICE, .value = &exchange, .initial = "ssend-irecv",
     .names = exchange_names, .help = "by which calls borders are exchanged"},
    {.name = "grid", .kind = OPTION_TEXT, .value = &grid, .initial = "",
     .help = "ranks in x, y, z and t, such as 1x1x2x4; by default that with the least surface"},
    {.name = "precision", .kind = OPTION_CHOICE, .value = &precision, .initial = "double",
     .names = precision_names, .help = "of links and momenta; sums are always double"},
    {.name = "instructions", .kind = OPTION_CHOICE, .value = &instructions, .initial = "best",
     .names = instruction_names, .help = "the vector unit"},
    {.name = "checkpoint", .kind = OPTION_TEXT, .value = &checkpoint, .initial = "",
     .help = "write the field to this file at the end"},
    {.name = "restart", .kind = OPTION_TEXT, .value = &restart, .initial = "",
     .help = "continue from this file"},
    {.name = "check", .kind = OPTION_CHOICE, .value = &proof, .initial = "none",
     .names = proof_names, .help = "prove this after the warm-ups instead of measuring"},
    {.name = "raw", .kind = OPTION_FLAG, .value = &raw,
     .help = "also print the time of every trajectory"},
};

static const program_description program = {
    "su3",
    "su3: SU(3) lattice gauge theory, in wyeast-records-2 (benchmarks/FORMAT.md).\n"
    "Wilson's action, refreshed molecular dynamics.\n",
    "mpiexec -n 4 su3 --nx 8 --ny 8 --nz 8 --nt 16 --beta 5.6 --trajectories 100",
    options, sizeof options / sizeof options[0]};

static double cpu_seconds(void)
{
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           1e-6 * (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

/* Prove that borders arrive as they were sent, and count them. */
static void verify(halo_links *h, measurement *m)
{
    complaint about = {""};
    const long long compared = verify_halo(h, &about);
    refuse_together(&program, compared < 0, &about);
    unsigned long long own[2] = {h->sent_bytes, (unsigned long long)compared}, all[2];
    MPI_Allreduce(own, all, 2, MPI_UNSIGNED_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
    m->moved = all[0];
    m->verified = all[1];
    if (all[0] != all[1]) {
        complain(&about, "%llu bytes of borders were sent and %llu arrived", all[0], all[1]);
        leave_together(program.name, about.text, EXIT_FAILED);
    }
}

static void begin_field(simulation *s)
{
    complaint about = {""};
    if (*restart) {
        if (read_checkpoint(s, restart, &about))
            leave_together(program.name, about.text, EXIT_FAILED);
    } else if (strcmp(start, "hot") == 0) {
        start_hot(s);
    } else {
        start_cold(s);
    }
    measure_plaquettes(s);
    for (long long i = 0; i < warmups; i++)
        run_trajectory(s, 0);
}

/* Time the trajectories; the longest rank's time counts. */
static void measure(simulation *s, measurement *m)
{
    complaint about = {""};
    const double waited = s->halo->waited_s;
    double own[2], deviation = 0.0;
    m->first = s->trajectory;
    MPI_Barrier(MPI_COMM_WORLD);
    const double began = seconds_now(), cpu = cpu_seconds();
    for (size_t i = 0; i < m->trajectories; i++) {
        MPI_Barrier(MPI_COMM_WORLD);
        const double before = seconds_now();
        m->results[i] = run_trajectory(s, accept);
        m->times[i] = seconds_now() - before;
        if (!(m->results[i].deviation <= deviation))
            deviation = m->results[i].deviation;
        if (!isfinite(m->results[i].delta_h) || !isfinite(m->results[i].plaquette)) {
            complain(&about, "trajectory %zu: the energy is not a number: the step is too long", i);
            leave_together(program.name, about.text, EXIT_FAILED);
        }
    }
    own[0] = cpu_seconds() - cpu;
    own[1] = s->halo->waited_s - waited;
    m->wall = seconds_now() - began;
    int clock_went_back = !(m->wall >= 0.0);
    for (size_t i = 0; i < m->trajectories; i++)
        clock_went_back |= !(m->times[i] >= 0.0);
    complain(&about, "the clock went backwards");
    refuse_together(&program, clock_went_back, &about);
    MPI_Gather(&own[0], 1, MPI_DOUBLE, m->cpu, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    MPI_Gather(&own[1], 1, MPI_DOUBLE, m->exchange, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    MPI_Reduce(&deviation, &m->deviation, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    for (size_t i = 0; i < m->trajectories; i++) {
        double mine = m->times[i];
        MPI_Reduce(&mine, &m->times[i], 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    }
}

static void run(simulation *s, measurement *m)
{
    complaint about = {""};
    begin_field(s);
    if (strcmp(proof, "none") != 0) {
        const double deviation = prove(s, proof);
        if (s->field->geometry->rank == 0)
            report_proof(s, proof, deviation);
        return;
    }
    m->results = calloc(m->trajectories, sizeof *m->results);
    m->times = calloc(m->trajectories, sizeof *m->times);
    m->cpu = calloc(m->ranks, sizeof *m->cpu);
    m->exchange = calloc(m->ranks, sizeof *m->exchange);
    const int failed = !m->results || !m->times || !m->cpu || !m->exchange;
    if (failed)
        complain(&about, "no memory for the results");
    refuse_together(&program, failed, &about);
    measure(s, m);
    if (*checkpoint && write_checkpoint(s, checkpoint, &about))
        leave_together(program.name, about.text, EXIT_FAILED);
    if (s->field->geometry->rank == 0 && report_simulation(s, m, raw))
        leave_at_once(program.name, "no memory for the order statistics");
    free(m->results);
    free(m->times);
    free(m->cpu);
    free(m->exchange);
}

int main(int argc, char **argv)
{
    begin_program(&program, &argc, &argv);
    complaint about = {""};
    int rank, ranks;
    geometry g;
    field f;
    halo_links h;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (divide_lattice(&g, sides, grid, rank, ranks, &about))
        leave_together(program.name, about.text, EXIT_USAGE);
    const kernels *k = choose_kernels(strcmp(precision, "double") == 0, instructions);
    if (!k)
        leave_together(program.name, "--instructions: this processor lacks them", EXIT_USAGE);
    const exchange_method *method = find_exchange(exchange);
    if (!method->start)
        leave_together(program.name, "--exchange neighbourhood: this MPI has no such calls",
                       EXIT_USAGE);
    if (!philox_is_right())
        leave_together(program.name, "the random numbers are not Philox's", EXIT_FAILED);
    begin_output(&program);
    int failed = make_field(&f, &g, k->number_bytes, k->lanes);
    if (failed)
        complain(&about, "no memory for %lld sites on a rank", g.own_volume);
    refuse_together(&program, failed, &about);
    refuse_together(&program, lay_out_halo(&h, &f, k, method, &about), &about);
    open_halo(&h);
    measurement m = {.trajectories = (size_t)trajectories, .ranks = (size_t)ranks,
                     .warmups = warmups, .hot = strcmp(start, "hot") == 0, .accept = accept};
    verify(&h, &m);
    simulation s = {.field = &f, .kernels = k, .halo = &h,
                    .integrator = find_integrator(integrator_name), .beta = beta,
                    .step_size = step_size, .steps = steps,
                    .key = {{(uint32_t)seed, (uint32_t)((unsigned long long)seed >> 32)}}};
    run(&s, &m);
    close_halo(&h);
    free_field(&f);
    end_program(&program, 1);
}
