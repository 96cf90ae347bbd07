#include "flow_sweeps.h"

#include <mpi.h>
#include <stdlib.h>

#include "benchmark.h"
#include "flow_coupling.h"

/* What a row needs of each of its points: the right side, and of the block on the diagonal, which is
 * lower triangular, all but its first element: the first column below it, the diagonal's
 * reciprocals, the last row. */
enum { RIGHT, FIRST_COLUMN = RIGHT + UNKNOWNS, RECIPROCAL = FIRST_COLUMN + 4,
       LAST_ROW = RECIPROCAL + 4, LINES = LAST_ROW + 3 };

/* Ranks in x: as square a grid as the number allows, with the longer side in y, so that rows of x
 * stay long. */
static int parts_in_x(int ranks)
{
    int parts = 1;
    for (int i = 1; (long long)i * i <= ranks; i++)
        if (ranks % i == 0)
            parts = i;
    return parts;
}

int divide_wave(wave *w, flow *f, const int points[3], int rank, int ranks)
{
    w->rank = rank;
    w->ranks = ranks;
    w->parts[0] = parts_in_x(w->ranks);
    w->parts[1] = w->ranks / w->parts[0];
    w->place[0] = w->rank % w->parts[0];
    w->place[1] = w->rank / w->parts[0];
    int first[3] = {0, 0, 0}, own[3] = {0, 0, points[2]};
    for (int d = 0; d < 2; d++) {
        if (points[d] / w->parts[d] < GHOSTS)
            return -1;
        first[d] = (int)first_of_part(points[d], w->parts[d], w->place[d]);
        own[d] = (int)first_of_part(points[d], w->parts[d], w->place[d] + 1) - first[d];
        const int step = d == 0 ? 1 : w->parts[0];
        w->neighbour[d][0] = w->place[d] > 0 ? w->rank - step : MPI_PROC_NULL;
        w->neighbour[d][1] = w->place[d] + 1 < w->parts[d] ? w->rank + step : MPI_PROC_NULL;
    }
    describe_flow(f, points, first, own);
    return 0;
}

static size_t numbers_of_border(const flow *f)
{
    return GHOSTS * UNKNOWNS * (size_t)f->points[2] *
           (size_t)(f->own[0] > f->own[1] ? f->own[0] : f->own[1]);
}

static size_t numbers_of_line(const flow *f)
{
    return (size_t)(LINES * f->row);
}

demand demand_of_wave(const flow *f)
{
    const double border = (double)numbers_of_border(f);
    const double all = (double)numbers_of_flow(f) + 4.0 * border + (double)numbers_of_line(f);
    return (demand){all * sizeof(double), border};
}

void reserve_wave(const program_description *program, wave *w, flow *f)
{
    reserve_flow(program, f);
    const size_t most = numbers_of_border(f);
    for (int side = 0; side < 2; side++) {
        w->sent[side] = reserve(program, most, sizeof(double));
        w->received[side] = reserve(program, most, sizeof(double));
    }
    w->line = reserve(program, numbers_of_line(f), sizeof(double));
}

void free_wave(wave *w)
{
    for (int side = 0; side < 2; side++) {
        free(w->sent[side]);
        free(w->received[side]);
    }
    free(w->line);
}

void fetch_neighbours(const wave *w, flow *f)
{
    for (int d = 0; d < 2; d++) {
        const int count = GHOSTS * UNKNOWNS * f->own[1 - d] * f->own[2];
        MPI_Request requests[4];
        for (int side = 0; side < 2; side++)
            MPI_Irecv(w->received[side], count, MPI_DOUBLE, w->neighbour[d][side], d,
                      MPI_COMM_WORLD, &requests[side]);
        for (int side = 0; side < 2; side++) {
            if (w->neighbour[d][side] != MPI_PROC_NULL)
                copy_border(f, d, side, w->sent[side], 0);
            MPI_Isend(w->sent[side], count, MPI_DOUBLE, w->neighbour[d][side], d, MPI_COMM_WORLD,
                      &requests[2 + side]);
        }
        MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
        for (int side = 0; side < 2; side++)
            if (w->neighbour[d][side] != MPI_PROC_NULL)
                copy_border(f, d, side, w->received[side], 1);
    }
    renew_derived(f);
}

/* sum += block v; `derived` and `v` are of the neighbour, whose values are `row` apart. */
PART_OF_IT void add_block(coupling c, int d, const double *derived, const double *v, ptrdiff_t row,
                          double sum[UNKNOWNS])
{
    const double normal = derived[d * row], by_mass = derived[ENERGY_BY_MASS * row];
    const double half_square = derived[HALF_SQUARE * row], mass = v[0], energy = v[4 * row];
    const double viscous = c.viscous * derived[VOLUME_BY_MASS * row];
    double along = 0.0, heat = CONDUCTION * (energy - by_mass * mass);
    for (int m = 0; m < 3; m++) {
        const double velocity = derived[m * row], momentum = v[(1 + m) * row];
        const double viscosity = VISCOSITY * (m == d ? SHEAR : 1.0);
        const double slip = momentum - velocity * mass;
        along += velocity * momentum;
        heat += (viscosity - CONDUCTION) * velocity * slip;
        sum[1 + m] += c.convection * (velocity * v[(1 + d) * row] + normal * slip) +
                      viscous * viscosity * slip + c.diffusion * momentum;
    }
    const double pressure = PRESSURE * (energy - along + half_square * mass);
    sum[0] += c.convection * v[(1 + d) * row] + c.diffusion * mass;
    sum[1 + d] += c.convection * pressure;
    /* The flux of (energy + pressure) times velocity, by the product rule. */
    const double enthalpy = GAMMA * by_mass - PRESSURE * half_square;
    sum[4] += c.convection * (enthalpy * (v[(1 + d) * row] - normal * mass) +
                              normal * (energy + pressure)) +
              viscous * heat + c.diffusion * energy;
}

/* What of a row's points can be found for all of them at once: all but what waits for the neighbour
 * in x. */
PART_OF_IT void prepare_row(const flow *f, const wave *w, int y, int z, double sign)
{
    const ptrdiff_t row = f->row;
    const int before = sign < 0 ? -1 : 1;
    const coupling in_y = coupling_along(f, w->time_step, 1, sign);
    const coupling in_z = coupling_along(f, w->time_step, 2, sign);
    const double *restrict here = f->derived + derived_row_of(f, y, z);
    const double *restrict derived_y = f->derived + derived_row_of(f, y + before, z);
    const double *restrict derived_z = f->derived + derived_row_of(f, y, z + before);
    const double *restrict v_y = f->residual + row_of(f, y + before, z);
    const double *restrict v_z = f->residual + row_of(f, y, z + before);
    const double *restrict v = f->residual + row_of(f, y, z);
    double *restrict line = w->line + GHOSTS;
    /* What does not depend on the point, of the block on the diagonal. */
    double conduction = 0.0, diffusion = 1.0, viscosity[3] = {0.0, 0.0, 0.0};
    for (int d = 0; d < 3; d++) {
        const coupling own = coupling_to_itself(f, w->time_step, d);
        conduction += own.viscous * CONDUCTION;
        diffusion += own.diffusion;
        for (int m = 0; m < 3; m++)
            viscosity[m] += own.viscous * VISCOSITY * (m == d ? SHEAR : 1.0);
    }
#pragma GCC ivdep
    for (ptrdiff_t x = f->inner_first[0]; x < f->inner_end[0]; x++) {
        double sum[UNKNOWNS] = {0.0, 0.0, 0.0, 0.0, 0.0};
        add_block(in_y, 1, derived_y + x, v_y + x, row, sum);
        add_block(in_z, 2, derived_z + x, v_z + x, row, sum);
        for (int m = 0; m < UNKNOWNS; m++)
            line[(RIGHT + m) * row + x] =
                sign < 0 ? w->time_step * v[m * row + x] - RELAXATION * sum[m]
                         : RELAXATION * sum[m];
        const double volume = here[VOLUME_BY_MASS * row + x];
        double below = -conduction * here[ENERGY_BY_MASS * row + x];
        for (int m = 0; m < 3; m++) {
            const double velocity = here[m * row + x];
            const double of_heat = (viscosity[m] - conduction) * velocity;
            line[(FIRST_COLUMN + m) * row + x] = -volume * viscosity[m] * velocity;
            line[(RECIPROCAL + m) * row + x] = 1.0 / (diffusion + volume * viscosity[m]);
            line[(LAST_ROW + m) * row + x] = volume * of_heat;
            below -= of_heat * velocity;
        }
        line[(FIRST_COLUMN + 3) * row + x] = volume * below;
        line[(RECIPROCAL + 3) * row + x] = 1.0 / (diffusion + volume * conduction);
    }
}

/* Solve the equations of a row, point by point; those of the neighbour at x + before are solved. */
PART_OF_IT void solve_row(const flow *f, const wave *w, int y, int z, double sign)
{
    const ptrdiff_t row = f->row;
    const int before = sign < 0 ? -1 : 1, count = f->inner_end[0] - f->inner_first[0];
    const coupling in_x = coupling_along(f, w->time_step, 0, sign);
    const double *restrict derived = f->derived + derived_row_of(f, y, z);
    const double *restrict line = w->line + GHOSTS;
    double *v = f->residual + row_of(f, y, z);
    double diffusion = 1.0;
    for (int d = 0; d < 3; d++)
        diffusion += coupling_to_itself(f, w->time_step, d).diffusion;
    const double first_reciprocal = 1.0 / diffusion;
    ptrdiff_t x = sign < 0 ? f->inner_first[0] : f->inner_end[0] - 1;
    for (int i = 0; i < count; i++, x -= before) {
        double sum[UNKNOWNS] = {0.0, 0.0, 0.0, 0.0, 0.0}, solved[UNKNOWNS];
        add_block(in_x, 0, derived + x + before, v + x + before, row, sum);
        for (int m = 0; m < UNKNOWNS; m++)
            sum[m] = line[(RIGHT + m) * row + x] + (sign < 0 ? -RELAXATION : RELAXATION) * sum[m];
        solved[0] = sum[0] * first_reciprocal;
        double rest = sum[4] - line[(FIRST_COLUMN + 3) * row + x] * solved[0];
        for (int m = 0; m < 3; m++) {
            solved[1 + m] = (sum[1 + m] - line[(FIRST_COLUMN + m) * row + x] * solved[0]) *
                            line[(RECIPROCAL + m) * row + x];
            rest -= line[(LAST_ROW + m) * row + x] * solved[1 + m];
        }
        solved[4] = rest * line[(RECIPROCAL + 3) * row + x];
        for (int m = 0; m < UNKNOWNS; m++) {
            double *of_point = &v[m * row + x];
            *of_point = sign < 0 ? solved[m] : *of_point - solved[m];
        }
    }
}

FOR_THIS_PROCESSOR
static void solve_plane_up(const flow *f, const wave *w, int z)
{
    for (int y = f->inner_first[1]; y < f->inner_end[1]; y++) {
        prepare_row(f, w, y, z, -1.0);
        solve_row(f, w, y, z, -1.0);
    }
}

FOR_THIS_PROCESSOR
static void solve_plane_down(const flow *f, const wave *w, int z)
{
    for (int y = f->inner_end[1] - 1; y >= f->inner_first[1]; y--) {
        prepare_row(f, w, y, z, 1.0);
        solve_row(f, w, y, z, 1.0);
    }
}

/* Copy one side of a plane: the points with this x (d = 0) or y. */
static void copy_side(const flow *f, int d, int at, int z, double *packed, int into)
{
    const int along = f->own[1 - d];
    for (int i = 0; i < along; i++) {
        const ptrdiff_t point = d == 0 ? row_of(f, i, z) + at : row_of(f, at, z) + i;
        for (int m = 0; m < UNKNOWNS; m++, packed++) {
            double *value = f->residual + point + m * f->row;
            if (into)
                *value = *packed;
            else
                *packed = *value;
        }
    }
}

/* Wait for the plane's points from the neighbours at one side, in x and y. */
static void receive_sides(const flow *f, const wave *w, int side, int z)
{
    for (int d = 0; d < 2; d++) {
        if (w->neighbour[d][side] == MPI_PROC_NULL)
            continue;
        MPI_Recv(w->received[side], UNKNOWNS * f->own[1 - d], MPI_DOUBLE, w->neighbour[d][side],
                 2 + side, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        copy_side(f, d, side == 0 ? -1 : f->own[d], z, w->received[side], 1);
    }
}

static void send_sides(const flow *f, const wave *w, int side, int z)
{
    for (int d = 0; d < 2; d++) {
        if (w->neighbour[d][side] == MPI_PROC_NULL)
            continue;
        copy_side(f, d, side == 0 ? 0 : f->own[d] - 1, z, w->sent[side], 0);
        MPI_Send(w->sent[side], UNKNOWNS * f->own[1 - d], MPI_DOUBLE, w->neighbour[d][side],
                 3 - side, MPI_COMM_WORLD);
    }
}

void sweep_up(const wave *w, flow *f)
{
    for (int z = f->inner_first[2]; z < f->inner_end[2]; z++) {
        receive_sides(f, w, 0, z);
        solve_plane_up(f, w, z);
        send_sides(f, w, 1, z);
    }
}

void sweep_down(const wave *w, flow *f)
{
    for (int z = f->inner_end[2] - 1; z >= f->inner_first[2]; z--) {
        receive_sides(f, w, 1, z);
        solve_plane_down(f, w, z);
        send_sides(f, w, 0, z);
    }
}
