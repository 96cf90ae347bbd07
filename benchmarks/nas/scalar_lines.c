/* SP's lines: the equations of the five waves along a direction, three that move with the flow and
 * two with the speed of sound relative to it, each pentadiagonal (RNR-94-007, section 4.2.2). */
#include "scalar_lines.h"

#include <math.h>

/* Waves that move alike have the same coefficients. */
enum { WITH_FLOW, FASTER, SLOWER, SPEEDS };
/* What is kept of a point: how the next one and the one after that enter it, for each speed. */
enum { KEPT = 2 * SPEEDS };
/* Of the last two points of a block's line: that, and the solution so far. */
enum { HANDED = 2 * (KEPT + UNKNOWNS) };

static const int all_waves[UNKNOWNS] = {0, 1, 2, 3, 4};

PART_OF_IT int speed_of_wave(int wave)
{
    return wave < 3 ? WITH_FLOW : wave == 3 ? FASTER : SLOWER;
}

/* C1 C2 of the specification. */
#define SQUARE_OF_SOUND (GAMMA * PRESSURE)

/* The speed of sound at points; of a vector the compiler takes all square roots at once. */
PART_OF_IT void take_sound(lanes *speed, const lanes *energy, const lanes *half_square)
{
    double square[LANES];
    const lanes by_mass = SQUARE_OF_SOUND * (*energy - *half_square);
    memcpy(square, &by_mass, sizeof square);
    for (int i = 0; i < LANES; i++)
        square[i] = sqrt(square[i]);
    memcpy(speed, square, sizeof square);
}

/* What a point's state contributes to the equations around it. */
typedef struct {
    lanes velocity, sound, spreading;
} wave_state;

PART_OF_IT void load_state(wave_state *w, const bundle *b, ptrdiff_t x)
{
    const flow *f = b->f;
    enum { NORMAL, BY_MASS, SQUARE, VOLUME, KINDS };
    const int order[KINDS] = {b->direction, ENERGY_BY_MASS, HALF_SQUARE, VOLUME_BY_MASS};
    lanes derived[KINDS];
    load_all(derived, order, KINDS, f->derived + b->derived_start + x * b->along.of_derived,
             f->row, b->across.of_derived, b->count);
    w->velocity = derived[NORMAL];
    take_sound(&w->sound, &derived[BY_MASS], &derived[SQUARE]);
    /* The largest of the diffusions of the five equations: that of the energy. */
    w->spreading = f->added_diffusion[b->direction] + CONDUCTION * derived[VOLUME];
}

/* The fourth differences that damp, one-sided next to the surface; of points two before to two
 * after. */
typedef struct {
    double at[5];
} damping;

PART_OF_IT damping damping_at(const flow *f, int d, ptrdiff_t x, double time_step)
{
    const ptrdiff_t at = f->first[d] + x, last = f->points[d] - 1;
    const double unit = DAMPING * time_step;
    damping a = {{unit, -4.0 * unit, 6.0 * unit, -4.0 * unit, unit}};
    if (at <= 2)
        a.at[0] = 0.0;
    if (at >= last - 2)
        a.at[4] = 0.0;
    if (at == 1)
        a.at[1] = 0.0;
    if (at == last - 1)
        a.at[3] = 0.0;
    if (at == 1 || at == last - 1)
        a.at[2] = 5.0 * unit;
    return a;
}

FOR_THIS_PROCESSOR
static void forwards(const bundle *b, double time_step, lanes *kept, lanes *handed)
{
    const flow *f = b->f;
    const int d = b->direction;
    const double by_square = time_step * f->by_step[d] * f->by_step[d];
    const double convection = 0.5 * time_step * f->by_step[d];
    const ptrdiff_t across = b->across.of_u;
    const ptrdiff_t first = f->inner_first[d], end = f->inner_end[d];
    wave_state states[3];
    for (int i = 0; i < 2; i++)
        load_state(&states[i], b, first - 1 + i);
    /* The two points before: the nearer one first. */
    lanes before[2][KEPT], solved[2][UNKNOWNS];
    for (int i = 0; i < 2; i++) {
        memcpy(before[i], handed + i * (KEPT + UNKNOWNS), sizeof before[i]);
        memcpy(solved[i], handed + i * (KEPT + UNKNOWNS) + KEPT, sizeof solved[i]);
    }
    for (ptrdiff_t x = first; x < end; x++, kept += KEPT) {
        load_state(&states[2], b, x + 1);
        const damping a = damping_at(f, d, x, time_step);
        lanes nearer[SPEEDS], reciprocal[SPEEDS], now[KEPT];
#pragma GCC unroll 3
        for (int s = 0; s < SPEEDS; s++) {
            lanes low = -convection * states[0].velocity, high = convection * states[2].velocity;
            if (s != WITH_FLOW) {
                const double way = s == FASTER ? convection : -convection;
                low -= way * states[0].sound;
                high += way * states[2].sound;
            }
            low += a.at[1] - by_square * states[0].spreading;
            high += a.at[3] - by_square * states[2].spreading;
            lanes own = 1.0 + a.at[2] + 2.0 * by_square * states[1].spreading;
            low -= a.at[0] * before[1][2 * s];
            own -= a.at[0] * before[1][2 * s + 1];
            own -= low * before[0][2 * s];
            high -= low * before[0][2 * s + 1];
            nearer[s] = low;
            reciprocal[s] = 1.0 / own;
            now[2 * s] = high * reciprocal[s];
            now[2 * s + 1] = a.at[4] * reciprocal[s];
        }
        double *place = f->residual + b->start + x * b->along.of_u;
        lanes right[UNKNOWNS];
        load_all(right, all_waves, UNKNOWNS, place, f->row, across, b->count);
#pragma GCC unroll 5
        for (int m = 0; m < UNKNOWNS; m++) {
            const int s = speed_of_wave(m);
            right[m] = (right[m] - a.at[0] * solved[1][m] - nearer[s] * solved[0][m]) *
                       reciprocal[s];
        }
        store_all(right, all_waves, UNKNOWNS, place, f->row, across, b->count);
        memcpy(kept, now, sizeof now);
        memcpy(before[1], before[0], sizeof before[0]);
        memcpy(before[0], now, sizeof now);
        memcpy(solved[1], solved[0], sizeof solved[0]);
        memcpy(solved[0], right, sizeof right);
        memmove(states, states + 1, 2 * sizeof states[0]);
    }
    for (int i = 0; i < 2; i++) {
        memcpy(handed + i * (KEPT + UNKNOWNS), before[i], sizeof before[i]);
        memcpy(handed + i * (KEPT + UNKNOWNS) + KEPT, solved[i], sizeof solved[i]);
    }
}

/* handed: the solutions of the next two points, the nearer one first. */
FOR_THIS_PROCESSOR
static void backwards(const bundle *b, const lanes *kept, lanes *handed)
{
    const flow *f = b->f;
    const int d = b->direction;
    const ptrdiff_t across = b->across.of_u;
    const ptrdiff_t first = f->inner_first[d], end = f->inner_end[d];
    for (ptrdiff_t x = end - 1; x >= first; x--) {
        const lanes *after = kept + (x - first) * KEPT;
        double *place = f->residual + b->start + x * b->along.of_u;
        lanes solved[UNKNOWNS];
        load_all(solved, all_waves, UNKNOWNS, place, f->row, across, b->count);
#pragma GCC unroll 5
        for (int m = 0; m < UNKNOWNS; m++) {
            const int s = speed_of_wave(m);
            solved[m] -= after[2 * s] * handed[m] + after[2 * s + 1] * handed[UNKNOWNS + m];
        }
        store_all(solved, all_waves, UNKNOWNS, place, f->row, across, b->count);
        memcpy(handed + UNKNOWNS, handed, sizeof solved);
        memcpy(handed, solved, sizeof solved);
    }
}

const line_solver scalar_lines = {HANDED, 2 * UNKNOWNS, KEPT, forwards, backwards};

/* From the unknowns to the waves along x. */
PART_OF_IT void begin_waves(const double *restrict derived, double *restrict r, ptrdiff_t row,
                            ptrdiff_t x)
{
    const double *u = derived + x, half_square = u[HALF_SQUARE * row];
    const double square = SQUARE_OF_SOUND * (u[ENERGY_BY_MASS * row] - half_square);
    const double scale = sqrt(0.5) * u[VOLUME_BY_MASS * row], volume = u[VOLUME_BY_MASS * row];
    const double mass = r[x], momentum[3] = {r[row + x], r[2 * row + x], r[3 * row + x]};
    const double by_pressure =
        PRESSURE / square * (half_square * mass - u[0] * momentum[0] - u[row] * momentum[1] -
                             u[2 * row] * momentum[2] + r[4 * row + x]);
    const double shear = scale * (u[0] * mass - momentum[0]);
    const double pressure = scale * sqrt(square) * by_pressure;
    r[x] = mass - by_pressure;
    r[row + x] = -volume * (u[2 * row] * mass - momentum[2]);
    r[2 * row + x] = volume * (u[row] * mass - momentum[1]);
    r[3 * row + x] = pressure - shear;
    r[4 * row + x] = pressure + shear;
}

/* From the waves along x to those along y: rotate. */
PART_OF_IT void turn_to_y(double *restrict r, ptrdiff_t row, ptrdiff_t x)
{
    const double flow_1 = r[x], flow_2 = r[row + x], flow_3 = r[2 * row + x];
    const double faster = r[3 * row + x], slower = r[4 * row + x];
    const double shear = sqrt(0.5) * flow_3, pressure = 0.5 * (faster + slower);
    r[x] = -flow_2;
    r[row + x] = flow_1;
    r[2 * row + x] = sqrt(0.5) * (faster - slower);
    r[3 * row + x] = pressure - shear;
    r[4 * row + x] = pressure + shear;
}

PART_OF_IT void turn_to_z(double *restrict r, ptrdiff_t row, ptrdiff_t x)
{
    const double flow_1 = r[x], flow_2 = r[row + x], flow_3 = r[2 * row + x];
    const double faster = r[3 * row + x], slower = r[4 * row + x];
    const double shear = sqrt(0.5) * flow_1, pressure = 0.5 * (faster + slower);
    r[x] = sqrt(0.5) * (faster - slower);
    r[row + x] = -flow_3;
    r[2 * row + x] = flow_2;
    r[3 * row + x] = pressure - shear;
    r[4 * row + x] = pressure + shear;
}

/* From the waves along z back to the unknowns. */
PART_OF_IT void end_waves(const double *restrict derived, double *restrict r, ptrdiff_t row,
                          ptrdiff_t x)
{
    const double *u = derived + x, density = 1.0 / u[VOLUME_BY_MASS * row];
    const double half_square = u[HALF_SQUARE * row];
    const double square = SQUARE_OF_SOUND * (u[ENERGY_BY_MASS * row] - half_square);
    const double flow_1 = r[x], flow_2 = r[row + x], flow_3 = r[2 * row + x];
    const double faster = r[3 * row + x], slower = r[4 * row + x];
    const double scale = sqrt(0.5) * density;
    const double by_pressure = scale / sqrt(square) * (faster + slower);
    const double mass = flow_3 + by_pressure, shear = scale * (faster - slower);
    r[x] = mass;
    r[row + x] = u[0] * mass - density * flow_2;
    r[2 * row + x] = u[row] * mass + density * flow_1;
    r[3 * row + x] = u[2 * row] * mass + shear;
    r[4 * row + x] = density * (u[row] * flow_1 - u[0] * flow_2) + half_square * mass +
                     square / PRESSURE * by_pressure + u[2 * row] * shear;
}

FOR_THIS_PROCESSOR
static void change_row(const double *restrict derived, double *restrict r, ptrdiff_t row, int first,
                       int end, int after)
{
    switch (after) {
    case 0:
#pragma GCC ivdep
        for (ptrdiff_t x = first; x < end; x++)
            begin_waves(derived, r, row, x);
        break;
    case 1:
#pragma GCC ivdep
        for (ptrdiff_t x = first; x < end; x++)
            turn_to_y(r, row, x);
        break;
    case 2:
#pragma GCC ivdep
        for (ptrdiff_t x = first; x < end; x++)
            turn_to_z(r, row, x);
        break;
    default:
#pragma GCC ivdep
        for (ptrdiff_t x = first; x < end; x++)
            end_waves(derived, r, row, x);
    }
}

void change_waves(const flow *f, int after)
{
    for (int z = f->inner_first[2]; z < f->inner_end[2]; z++)
        for (int y = f->inner_first[1]; y < f->inner_end[1]; y++)
            change_row(f->derived + derived_row_of(f, y, z), f->residual + row_of(f, y, z), f->row,
                       f->inner_first[0], f->inner_end[0], after);
}
