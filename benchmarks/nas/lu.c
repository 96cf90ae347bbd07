/* LU: the Navier-Stokes equations on a box, by symmetric successive over-relaxation (RNR-94-007,
 * section 4.2): waves of many short messages. */
#include <mpi.h>
#include <stdio.h>

#include "benchmark.h"
#include "flow.h"
#include "flow_sweeps.h"

static const option options[] = {CLASS_OPTION, REPETITION_OPTION};
static const program_description program = {
    "nas_lu",
    "nas_lu: LU of the NAS Parallel Benchmarks, with NPB's summary lines.\n"
    "The ranks form a grid as square as their number allows, each with 2 x 2 lines of points or\n"
    "more.\n",
    "mpiexec -n 4 nas_lu --class A", options, sizeof options / sizeof options[0]};

typedef struct {
    const flow_reference *reference;
    flow f;
    wave w;
} solver_of_flow;

static void set_up(solver_of_flow *l)
{
    const int *n = l->reference->points;
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    l->w.time_step = l->reference->time_step;
    if (divide_wave(&l->w, &l->f, n, rank, ranks)) {
        complaint about;
        complain(&about, "%d ranks are too many for the %d x %d x %d points of class %s: a grid of "
                 "ranks as square as %d allows must leave each 2 x 2 lines of points",
                 l->w.ranks, n[0], n[1], n[2], chosen_class, l->w.ranks);
        leave_together(program.name, about.text, EXIT_USAGE);
    }
    refuse_too_much(&program, demand_of_wave(&l->f));
    reserve_wave(&program, &l->w, &l->f);
    make_forcing(&l->f);
}

static void prepare(void *solver)
{
    solver_of_flow *l = solver;
    begin_flow(&l->f);
    renew_derived(&l->f);
    take_flow_residual(&l->f);
}

static void step(solver_of_flow *l)
{
    sweep_up(&l->w, &l->f);
    sweep_down(&l->w, &l->f);
    advance(&l->f, OVER_RELAXED_SHARE);
    fetch_neighbours(&l->w, &l->f);
    take_flow_residual(&l->f);
}

static void solve(void *solver)
{
    solver_of_flow *l = solver;
    for (int i = 0; i < l->reference->iterations; i++)
        step(l);
}

static void verify(void *solver, verification *v)
{
    const solver_of_flow *l = solver;
    double integral = surface_integral(&l->f), all = 0.0;
    verify_flow(&l->f, 1, l->reference, lu_tolerance, v);
    MPI_Reduce(&integral, &all, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (l->w.rank == 0)
        verify_real(v, "the surface integral", all, l->reference->integral, lu_tolerance);
}

int main(int argc, char **argv)
{
    begin_benchmark(&program, "LU", &argc, &argv);
    static solver_of_flow l;
    l.reference = &lu_references[class_index()];
    set_up(&l);
    prepare(&l);
    step(&l); /* Untimed. */
    const timed_part part = {.prepare = prepare, .section = solve, .verify = verify};
    section_times times;
    verification verified = {0};
    time_section(&part, &l, &times, &verified);
    const int *n = l.reference->points, iterations = l.reference->iterations;
    const double mean = (n[0] + n[1] + n[2]) / 3.0, points = (double)n[0] * n[1] * n[2];
    const double of_a_step = 1984.77 * points - 10923.3 * mean * mean + 27770.9 * mean - 144010.0;
    const run_summary summary = {.benchmark = "LU", .size = {n[0], n[1], n[2]},
                                 .iterations = iterations, .operations = iterations * of_a_step,
                                 .operation_type = "floating point"};
    free_wave(&l.w);
    free_flow(&l.f);
    end_benchmark(&program, &summary, &times, &verified);
}
