/* The operator of the flow (RNR-94-007, section 3.3): central differences of the fluxes, second
 * differences of what diffuses, and fourth differences that damp. */
#include "flow.h"
#include "for_this_processor.h"

FOR_THIS_PROCESSOR
static void derive_row(const double *restrict u, double *restrict derived, ptrdiff_t row, int first,
                       int end)
{
    for (ptrdiff_t x = first; x < end; x++) {
        const double volume = 1.0 / u[x];
        double half_square = 0.0;
        for (int m = 0; m < 3; m++) {
            const double velocity = volume * u[(1 + m) * row + x];
            derived[m * row + x] = velocity;
            half_square += velocity * velocity;
        }
        derived[ENERGY_BY_MASS * row + x] = volume * u[4 * row + x];
        derived[HALF_SQUARE * row + x] = 0.5 * half_square;
        derived[VOLUME_BY_MASS * row + x] = volume;
    }
}

void renew_derived(flow *f)
{
    /* One point beyond the block, where there is any. */
    int first[3], end[3];
    for (int d = 0; d < 3; d++) {
        first[d] = f->first[d] == 0 ? 0 : -1;
        end[d] = f->own[d] + (f->first[d] + f->own[d] < f->points[d]);
    }
    for (int z = first[2]; z < end[2]; z++)
        for (int y = first[1]; y < end[1]; y++)
            derive_row(f->u + row_of(f, y, z), f->derived + derived_row_of(f, y, z), f->row,
                       first[0], end[0]);
}

/* The difference of a product of two neighbours. */
#define BETWEEN(a, b)                                                                              \
    ((a)[x + s.of_u] * (b)[x + s.of_derived] - (a)[x - s.of_u] * (b)[x - s.of_derived])
#define SECOND(a, step) ((a)[x - (step)] - 2.0 * (a)[x] + (a)[x + (step)])

/* Add to a row's residual what its neighbours in direction d do, but for the damping. */
PART_OF_IT void add_fluxes(const flow *f, int d, int y, int z)
{
    const stride s = stride_along(f, d);
    const ptrdiff_t row = f->row;
    const double *restrict u = f->u + row_of(f, y, z);
    const double *restrict derived = f->derived + derived_row_of(f, y, z);
    double *restrict out = f->residual + row_of(f, y, z);
    const double *density = u, *energy = u + 4 * row;
    const double *velocity = derived + d * row, *by_mass = derived + ENERGY_BY_MASS * row;
    const double *half_square = derived + HALF_SQUARE * row;
    const double convection = -0.5 * f->by_step[d], by_square = f->by_step[d] * f->by_step[d];
    const double viscous = VISCOSITY * by_square, conduction = CONDUCTION * by_square;
    const double diffusion = f->added_diffusion[d] * by_square;
#pragma GCC ivdep
    for (ptrdiff_t x = f->inner_first[0]; x < f->inner_end[0]; x++) {
        const double after = PRESSURE * (energy[x + s.of_u] - density[x + s.of_u] *
                                                                  half_square[x + s.of_derived]);
        const double before = PRESSURE * (energy[x - s.of_u] - density[x - s.of_u] *
                                                                   half_square[x - s.of_derived]);
        out[x] += convection * (u[(1 + d) * row + x + s.of_u] - u[(1 + d) * row + x - s.of_u]) +
                  diffusion * SECOND(density, s.of_u);
        for (int m = 0; m < 3; m++) {
            const double *momentum = u + (1 + m) * row;
            double flux = BETWEEN(momentum, velocity);
            if (m == d)
                flux += after - before;
            out[(1 + m) * row + x] += convection * flux + diffusion * SECOND(momentum, s.of_u) +
                                      viscous * (m == d ? SHEAR : 1.0) *
                                          SECOND(derived + m * row, s.of_derived);
        }
        const double squares = velocity[x - s.of_derived] * velocity[x - s.of_derived] -
                               2.0 * velocity[x] * velocity[x] +
                               velocity[x + s.of_derived] * velocity[x + s.of_derived];
        const double flux = (energy[x + s.of_u] + after) * velocity[x + s.of_derived] -
                            (energy[x - s.of_u] + before) * velocity[x - s.of_derived];
        out[4 * row + x] += convection * flux + diffusion * SECOND(energy, s.of_u) +
                            (viscous - conduction) * SECOND(half_square, s.of_derived) +
                            viscous / 6.0 * squares +
                            conduction * SECOND(by_mass, s.of_derived);
    }
}

/* The fourth difference, one-sided next to the surface, for points of a row with the same place in
 * direction d. */
PART_OF_IT void damp(const flow *f, int d, int at, int y, int z, ptrdiff_t first, ptrdiff_t end)
{
    const ptrdiff_t step = stride_along(f, d).of_u;
    const int last = f->points[d] - 1;
    const double point = at == 1 || at == last - 1 ? 5.0 : 6.0;
    const double below = at == 1 ? 0.0 : -4.0, above = at == last - 1 ? 0.0 : -4.0;
    /* What is not there is not read, either. */
    const double far_below = at <= 2 ? 0.0 : 1.0, far_above = at >= last - 2 ? 0.0 : 1.0;
    const ptrdiff_t back = at <= 2 ? 0 : 2 * step, forth = at >= last - 2 ? 0 : 2 * step;
    for (int m = 0; m < UNKNOWNS; m++) {
        const double *restrict u = f->u + row_of(f, y, z) + m * f->row;
        double *restrict out = f->residual + row_of(f, y, z) + m * f->row;
#pragma GCC ivdep
        for (ptrdiff_t x = first; x < end; x++)
            out[x] -= DAMPING * (far_below * u[x - back] + below * u[x - step] + point * u[x] +
                                 above * u[x + step] + far_above * u[x + forth]);
    }
}

PART_OF_IT void damp_along_row(const flow *f, int y, int z)
{
    /* The two points next to each end are each by itself. */
    int x = f->inner_first[0];
    while (x < f->inner_end[0]) {
        const int at = f->first[0] + x;
        int end = x + 1;
        if (at > 2 && at < f->points[0] - 3) {
            end = f->points[0] - 3 - f->first[0];
            end = end < f->inner_end[0] ? end : f->inner_end[0];
        }
        damp(f, 0, at, y, z, x, end);
        x = end;
    }
}

FOR_THIS_PROCESSOR
static void take_row(const flow *f, int y, int z)
{
    const ptrdiff_t start = row_of(f, y, z);
    for (int m = 0; m < UNKNOWNS; m++)
        for (ptrdiff_t x = f->inner_first[0]; x < f->inner_end[0]; x++)
            f->residual[start + m * f->row + x] = -f->forcing[start + m * f->row + x];
    add_fluxes(f, 0, y, z);
    damp_along_row(f, y, z);
    add_fluxes(f, 1, y, z);
    damp(f, 1, f->first[1] + y, y, z, f->inner_first[0], f->inner_end[0]);
    add_fluxes(f, 2, y, z);
    damp(f, 2, f->first[2] + z, y, z, f->inner_first[0], f->inner_end[0]);
}

void take_flow_residual(flow *f)
{
    for (int z = f->inner_first[2]; z < f->inner_end[2]; z++)
        for (int y = f->inner_first[1]; y < f->inner_end[1]; y++)
            take_row(f, y, z);
}
