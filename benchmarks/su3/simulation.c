#include "simulation.h"

#include <math.h>
#include <string.h>

#define PI 3.14159265358979323846

const char *const integrator_names[] = {"leapfrog", "omelyan", "omelyan4", NULL};

/* Omelyan, Mryglod and Folk, Comput. Phys. Commun. 151 (2003) 272: the best of second order with two
 * forces a step, and of fourth order with four, both beginning with positions. */
#define LAMBDA 0.1931833275037836
#define XI 0.1786178958448091
#define ETA (-0.2123418310626054)
#define CHI (-0.06626458266981849)

static const integrator integrators[] = {
    {"leapfrog", 1, {0.5}, {1.0}, 0.5},
    {"omelyan", 2, {LAMBDA, 1.0 - 2.0 * LAMBDA}, {0.5, 0.5}, LAMBDA},
    {"omelyan4", 4, {XI, CHI, 1.0 - 2.0 * (CHI + XI), CHI},
     {(1.0 - 2.0 * ETA) / 2.0, ETA, ETA, (1.0 - 2.0 * ETA) / 2.0}, XI},
};

const integrator *find_integrator(const char *name)
{
    for (size_t i = 0; i < sizeof integrators / sizeof integrators[0]; i++)
        if (strcmp(integrators[i].name, name) == 0)
            return &integrators[i];
    return NULL;
}

static philox_block block_of(philox_key key, long long site, unsigned long long trajectory,
                             purpose why, int direction, int block)
{
    const philox_block counter = {{(uint32_t)site, (uint32_t)((unsigned long long)site >> 32),
                                   (uint32_t)trajectory,
                                   ((uint32_t)why * DIMENSIONS + (uint32_t)direction) * 4u +
                                       (uint32_t)block}};
    return philox(counter, key);
}

void normal_numbers(philox_key key, long long site, unsigned long long trajectory, purpose why,
                    int direction, int blocks, double *numbers)
{
    for (int block = 0; block < blocks; block++) {
        const philox_block r = block_of(key, site, trajectory, why, direction, block);
        for (int i = 0; i < 4; i += 2) {
            const double length = sqrt(-2.0 * log(((double)r.word[i] + 1.0) * 0x1p-32));
            const double angle = 2.0 * PI * 0x1p-32 * (double)r.word[i + 1];
            *numbers++ = length * cos(angle);
            *numbers++ = length * sin(angle);
        }
    }
}

/* Make three complex numbers one long. */
static void normalise(double *row)
{
    double square = 0.0;
    for (int i = 0; i < 6; i++)
        square += row[i] * row[i];
    for (int i = 0; i < 6; i++)
        row[i] /= sqrt(square);
}

void random_matrix(philox_key key, long long site, purpose why, int direction, double *matrix)
{
    double *a = matrix, *b = matrix + 6, *c = matrix + 12, re = 0.0, im = 0.0;
    normal_numbers(key, site, 0, why, direction, 3, matrix);
    normalise(a);
    for (int i = 0; i < 6; i += 2) {
        re += a[i] * b[i] + a[i + 1] * b[i + 1];
        im += a[i] * b[i + 1] - a[i + 1] * b[i];
    }
    for (int i = 0; i < 6; i += 2) {
        b[i] -= re * a[i] - im * a[i + 1];
        b[i + 1] -= re * a[i + 1] + im * a[i];
    }
    normalise(b);
    for (int i = 0; i < 6; i += 2) {
        const int j = (i + 2) % 6, k = (i + 4) % 6;
        c[i] = a[j] * b[k] - a[j + 1] * b[k + 1] - a[k] * b[j] + a[k + 1] * b[j + 1];
        c[i + 1] = a[k] * b[j + 1] + a[k + 1] * b[j] - a[j] * b[k + 1] - a[j + 1] * b[k];
    }
}

static long long number_of_site(const geometry *g, const int *site)
{
    const int own[DIMENSIONS] = {site[0] - 1, site[1] - 1, site[2] - 1, site[3] - 1};
    return site_number(g, own);
}

void start_cold(simulation *s)
{
    static const double one[MATRIX] = {[0] = 1.0, [8] = 1.0, [16] = 1.0};
    int site[DIMENSIONS] = {1, 1, 1, 1};
    do
        for (int mu = 0; mu < DIMENSIONS; mu++)
            set_link(s->field, site, mu, one);
    while (next_site(s->field->geometry, site));
}

void start_hot(simulation *s)
{
    int site[DIMENSIONS] = {1, 1, 1, 1};
    do
        for (int mu = 0; mu < DIMENSIONS; mu++) {
            double link[MATRIX];
            random_matrix(s->key, number_of_site(s->field->geometry, site), FOR_LINKS, mu, link);
            set_link(s->field, site, mu, link);
        }
    while (next_site(s->field->geometry, site));
}

static double sum_over_ranks(double own)
{
    double sum;
    MPI_Allreduce(&own, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return sum;
}

void measure_plaquettes(simulation *s)
{
    exchange_links(s->halo);
    s->plaquettes = sum_over_ranks(s->kernels->plaquettes(s->field));
}

double kinetic_energy(const simulation *s)
{
    return sum_over_ranks(s->kernels->kinetic(s->field));
}

double mean_plaquette(const simulation *s)
{
    return s->plaquettes / (18.0 * (double)s->field->geometry->volume);
}

/* H = sum of g_a lambda_a / sqrt 2 over Gell-Mann's eight matrices, so that tr H^2 / 2 is half the
 * sum of the squares of eight normal numbers. */
void draw_momenta(simulation *s)
{
    const double half = sqrt(0.5), third = sqrt(1.0 / 3.0);
    int site[DIMENSIONS] = {1, 1, 1, 1};
    do {
        const long long number = number_of_site(s->field->geometry, site);
        for (int mu = 0; mu < DIMENSIONS; mu++) {
            double g[8], h[MOMENTUM];
            normal_numbers(s->key, number, s->trajectory, FOR_MOMENTA, mu, 2, g);
            h[0] = half * (g[6] + third * g[7]);
            h[1] = half * (third * g[7] - g[6]);
            h[2] = -2.0 * half * third * g[7];
            for (int i = 0; i < 6; i++)
                h[3 + i] = half * g[i];
            set_momentum(s->field, site, mu, h);
        }
    } while (next_site(s->field->geometry, site));
}

/* Turn the momenta while the borders travel; what needs them comes last. */
static void turn(simulation *s, double step)
{
    field *f = s->field;
    const double factor = step * s->beta / 3.0;
    const size_t half = f->inner_chunks / (s->halo->phases == 2 ? 2 : 1);
    begin_exchange(s->halo);
    s->kernels->turn(f, f->chunks, half, factor);
    go_on(s->halo, 0);
    s->kernels->turn(f, f->chunks + half, f->inner_chunks - half, factor);
    go_on(s->halo, 1);
    s->kernels->turn(f, f->chunks + f->inner_chunks, f->all_chunks - f->inner_chunks, factor);
}

void integrate(simulation *s)
{
    const integrator *i = s->integrator;
    double pending = 0.0;
    for (long long step = 0; step < s->steps; step++) {
        for (int stage = 0; stage < i->stages; stage++) {
            move_links(s->halo, (pending + i->u[stage]) * s->step_size);
            pending = 0.0;
            turn(s, i->h[stage] * s->step_size);
        }
        pending = i->last; /* Goes with the next step's first part. */
    }
    move_links(s->halo, pending * s->step_size);
}

trajectory_result run_trajectory(simulation *s, int accept)
{
    trajectory_result result = {.accepted = 1};
    draw_momenta(s);
    const double before = kinetic_energy(s), plaquettes = s->plaquettes;
    if (accept)
        save_links(s->field);
    integrate(s);
    result.deviation = s->kernels->straighten(s->field);
    measure_plaquettes(s);
    result.delta_h = kinetic_energy(s) - before + s->beta / 3.0 * (plaquettes - s->plaquettes);
    if (accept) {
        /* One number for all: every rank draws the same and has the same sums. */
        const philox_block r = block_of(s->key, 0, s->trajectory, FOR_ACCEPTANCE, 0, 0);
        result.accepted = ((double)r.word[0] + 0.5) * 0x1p-32 < exp(-result.delta_h);
        if (!result.accepted) {
            restore_links(s->field);
            s->plaquettes = plaquettes;
        }
    }
    result.plaquette = mean_plaquette(s);
    s->trajectory++;
    return result;
}
