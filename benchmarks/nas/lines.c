#include "lines.h"

#include <stdint.h>
#include <stdlib.h>

/* The directions across a direction: the inner one is that of lines side by side. */
static void directions_across(int direction, int *inner, int *outer)
{
    *inner = direction == 0 ? 1 : 0;
    *outer = direction == 2 ? 1 : 2;
}

static int inner_points(const flow *f, int direction)
{
    return f->inner_end[direction] - f->inner_first[direction];
}

static size_t bundles_in(const flow *f, int direction)
{
    int inner, outer;
    directions_across(direction, &inner, &outer);
    return (size_t)((inner_points(f, inner) + LANES - 1) / LANES) * (size_t)inner_points(f, outer);
}

static size_t lines_in(const flow *f, int direction)
{
    int inner, outer;
    directions_across(direction, &inner, &outer);
    return (size_t)inner_points(f, inner) * (size_t)inner_points(f, outer);
}

/* How much there is room for: vectors kept in all, and numbers handed on at once. */
typedef struct {
    size_t kept, handed;
} line_numbers;

static line_numbers numbers_of_lines(const multi_partition *p, const line_solver *solver)
{
    size_t kept = 0, lines = 0;
    for (int d = 0; d < 3; d++) {
        size_t of_direction = 0;
        for (int i = 0; i < p->parts; i++) {
            const flow *f = &p->blocks[i];
            of_direction += bundles_in(f, d) * (size_t)inner_points(f, d);
            if (lines_in(f, d) > lines)
                lines = lines_in(f, d);
        }
        /* Whole lines are solved one after the other. */
        if (p->parts == 1)
            of_direction = (size_t)inner_points(p->blocks, d);
        if (of_direction > kept)
            kept = of_direction;
    }
    return (line_numbers){kept * (size_t)solver->kept, lines * (size_t)solver->handed_on};
}

demand demand_of_lines(const multi_partition *p, const int points[3], const line_solver *solver)
{
    const line_numbers lines = numbers_of_lines(p, solver);
    const double handed = (double)lines.handed;
    const double borders = p->parts > 1 ? (double)most_of_borders(p, points) : 0.0;
    double numbers = 2.0 * handed + 4.0 * borders + (double)lines.kept * LANES;
    for (int i = 0; i < p->parts; i++)
        numbers += (double)numbers_of_flow(&p->blocks[i]);
    return (demand){numbers * sizeof(double),
                    p->parts > 1 && handed > borders ? handed : borders};
}

line_room make_line_room(const program_description *program, const multi_partition *p,
                         const line_solver *solver)
{
    const line_numbers numbers = numbers_of_lines(p, solver);
    const size_t kept = numbers.kept, handed = numbers.handed;
    line_room room = {0};
    /* Vectors begin at multiples of their size. */
    if (kept > 0 && kept <= SIZE_MAX / sizeof(lanes))
        room.kept = aligned_alloc(sizeof(lanes), kept * sizeof(lanes));
    if (!room.kept)
        leave_at_once(program->name, "no memory for the lines' coefficients");
    memset(room.kept, 0, kept * sizeof(lanes));
    room.sent = reserve(program, handed, sizeof(double));
    room.received = reserve(program, handed, sizeof(double));
    return room;
}

void free_line_room(const line_room *room)
{
    free(room->kept);
    free(room->sent);
    free(room->received);
}

/* The lines of a block from a point across on: at most LANES of them. */
static bundle bundle_at(const flow *f, int direction, int at_inner, int at_outer)
{
    int inner, outer, at[3] = {0, 0, 0};
    directions_across(direction, &inner, &outer);
    at[inner] = at_inner;
    at[outer] = at_outer;
    const int left = f->inner_end[inner] - at_inner;
    return (bundle){.f = f,
                    .direction = direction,
                    .count = left < LANES ? left : LANES,
                    .start = row_of(f, at[1], at[2]) + at[0],
                    .derived_start = derived_row_of(f, at[1], at[2]) + at[0],
                    .along = stride_along(f, direction),
                    .across = stride_along(f, inner)};
}

/* All bundles of a block, one way or both; what they hand on is packed without unused lanes. */
typedef struct {
    const line_solver *solver;
    double time_step;
    int forwards, backwards;
    lanes *kept;
    ptrdiff_t kept_of_bundle; /* From one bundle to the next. */
    const double *received;   /* Nothing at the surface. */
    double *sent;
} passage;

enum { MOST_HANDED = 32 };

static void pass_through(const flow *f, int direction, const passage *a)
{
    int inner, outer;
    directions_across(direction, &inner, &outer);
    const int handed = a->forwards ? a->solver->handed_on : a->solver->handed_back;
    size_t at = 0;
    lanes *kept = a->kept;
    for (int j = f->inner_first[outer]; j < f->inner_end[outer]; j++)
        for (int i = f->inner_first[inner]; i < f->inner_end[inner]; i += LANES) {
            const bundle b = bundle_at(f, direction, i, j);
            lanes between[MOST_HANDED] = {{0}};
            for (int k = 0; a->received && k < handed; k++)
                load(&between[k], a->received + at + (size_t)(k * b.count), 1, b.count);
            if (a->forwards)
                a->solver->forwards(&b, a->time_step, kept, between);
            if (a->forwards && a->backwards)
                memset(between, 0, sizeof between);
            if (a->backwards)
                a->solver->backwards(&b, kept, between);
            for (int k = 0; a->sent && k < handed; k++)
                store(&between[k], a->sent + at + (size_t)(k * b.count), 1, b.count);
            at += (size_t)(handed * b.count);
            kept += a->kept_of_bundle;
        }
}

/* Where the kept numbers of a rank's block begin. */
static lanes *kept_of_block(const multi_partition *p, int direction, int block,
                            const line_solver *solver, const line_room *room)
{
    size_t before = 0;
    for (int i = 0; i < block; i++)
        before += bundles_in(&p->blocks[i], direction) *
                  (size_t)inner_points(&p->blocks[i], direction);
    return room->kept + before * (size_t)solver->kept;
}

static void pass_blocks(const multi_partition *p, int direction, const line_solver *solver,
                        double time_step, const line_room *room, int forwards)
{
    const int first = forwards ? 0 : p->parts - 1, step = forwards ? 1 : -1;
    const size_t handed = (size_t)(forwards ? solver->handed_on : solver->handed_back);
    for (int i = 0; i < p->parts; i++) {
        const int block = block_at(p, direction, first + i * step);
        const flow *f = &p->blocks[block];
        const passage a = {solver, time_step, forwards, !forwards,
                           kept_of_block(p, direction, block, solver, room),
                           (ptrdiff_t)inner_points(f, direction) * solver->kept,
                           i > 0 ? room->received : NULL, i + 1 < p->parts ? room->sent : NULL};
        pass_through(f, direction, &a);
        if (i + 1 == p->parts)
            break;
        const flow *next = &p->blocks[block_at(p, direction, first + (i + 1) * step)];
        pass_on(p, direction, forwards ? 1 : 0, room->sent, lines_in(f, direction) * handed,
                room->received, lines_in(next, direction) * handed);
    }
}

void solve_lines(const multi_partition *p, int direction, const line_solver *solver,
                 double time_step, const line_room *room)
{
    if (p->parts == 1) {
        const passage both = {solver, time_step, 1, 1, room->kept, 0, NULL, NULL};
        pass_through(p->blocks, direction, &both);
        return;
    }
    pass_blocks(p, direction, solver, time_step, room, 1);
    pass_blocks(p, direction, solver, time_step, room, 0);
}
