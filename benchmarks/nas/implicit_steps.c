#include "implicit_steps.h"

#include <mpi.h>

typedef struct {
    const implicit_scheme *scheme;
    const flow_reference *reference;
    multi_partition p;
    line_room room;
} solver_in_turn;

static void set_up(solver_in_turn *s)
{
    const int *n = s->reference->points;
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (divide_partition(&s->p, n, rank, ranks)) {
        complaint about;
        complain(&about, "%d ranks: must be a square number, and leave each block of the %d x %d x "
                 "%d points of class %s two in each direction",
                 s->p.ranks, n[0], n[1], n[2], chosen_class);
        leave_together(s->scheme->program->name, about.text, EXIT_USAGE);
    }
    s->p.blocks = reserve(s->scheme->program, (size_t)s->p.parts, sizeof *s->p.blocks);
    describe_blocks(&s->p, n);
    refuse_too_much(s->scheme->program, demand_of_lines(&s->p, n, s->scheme->solver));
    reserve_partition(s->scheme->program, &s->p, n);
    s->room = make_line_room(s->scheme->program, &s->p, s->scheme->solver);
    for (int i = 0; i < s->p.parts; i++)
        make_forcing(&s->p.blocks[i]);
}

static void prepare(void *solver)
{
    const solver_in_turn *s = solver;
    for (int i = 0; i < s->p.parts; i++)
        begin_flow(&s->p.blocks[i]);
}

static void scale_residual(const flow *f, double time_step)
{
    for (int z = f->inner_first[2]; z < f->inner_end[2]; z++)
        for (int y = f->inner_first[1]; y < f->inner_end[1]; y++)
            for (int m = 0; m < UNKNOWNS; m++) {
                double *row = f->residual + row_of(f, y, z) + m * f->row;
                for (int x = f->inner_first[0]; x < f->inner_end[0]; x++)
                    row[x] *= time_step;
            }
}

static void take_residuals(const solver_in_turn *s)
{
    fetch_neighbour_blocks(&s->p);
    for (int i = 0; i < s->p.parts; i++)
        take_flow_residual(&s->p.blocks[i]);
}

static void do_between(const solver_in_turn *s, int after)
{
    for (int i = 0; s->scheme->between && i < s->p.parts; i++)
        s->scheme->between(&s->p.blocks[i], after);
}

static void step(const solver_in_turn *s)
{
    take_residuals(s);
    for (int i = 0; i < s->p.parts; i++)
        scale_residual(&s->p.blocks[i], s->reference->time_step);
    do_between(s, 0);
    for (int d = 0; d < 3; d++) {
        solve_lines(&s->p, d, s->scheme->solver, s->reference->time_step, &s->room);
        do_between(s, d + 1);
    }
    for (int i = 0; i < s->p.parts; i++)
        advance(&s->p.blocks[i], 1.0);
}

static void solve(void *solver)
{
    const solver_in_turn *s = solver;
    for (int i = 0; i < s->reference->iterations; i++)
        step(s);
}

static void verify(void *solver, verification *v)
{
    const solver_in_turn *s = solver;
    take_residuals(s);
    verify_flow(s->p.blocks, s->p.parts, s->reference, s->scheme->tolerance, v);
}

void solve_implicitly(const implicit_scheme *scheme, int *argc, char ***argv)
{
    begin_benchmark(scheme->program, scheme->benchmark, argc, argv);
    static solver_in_turn s;
    s.scheme = scheme;
    s.reference = &scheme->references[class_index()];
    set_up(&s);
    prepare(&s);
    step(&s); /* Untimed. */
    const timed_part part = {.prepare = prepare, .section = solve, .verify = verify};
    section_times times;
    verification verified = {0};
    time_section(&part, &s, &times, &verified);
    const int *n = s.reference->points, iterations = s.reference->iterations;
    const double mean = (n[0] + n[1] + n[2]) / 3.0, points = (double)n[0] * n[1] * n[2];
    const double of_a_step = scheme->of_points * points + scheme->of_mean_square * mean * mean +
                             scheme->of_mean * mean + scheme->of_step;
    const run_summary summary = {.benchmark = scheme->benchmark, .size = {n[0], n[1], n[2]},
                                 .iterations = iterations, .operations = iterations * of_a_step,
                                 .operation_type = "floating point"};
    free_line_room(&s.room);
    free_partition(&s.p);
    end_benchmark(scheme->program, &summary, &times, &verified);
}
