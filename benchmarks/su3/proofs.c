#include "proofs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Of the links' entries, which are up to 1: far above the rounding of single precision. */
#define LEAST_MOVE 1e-3

const char *const proof_names[] = {"none", "reversibility", "gauge", NULL};

static double largest_over_ranks(double own)
{
    double largest;
    MPI_Allreduce(&own, &largest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return largest;
}

/* The largest difference between the links and those that were saved. */
static double difference_from_saved(simulation *s)
{
    const geometry *g = s->field->geometry;
    field saved = *s->field;
    saved.links = s->field->saved;
    double largest = 0.0;
    int site[DIMENSIONS] = {1, 1, 1, 1};
    do
        for (int mu = 0; mu < DIMENSIONS; mu++) {
            double now[MATRIX], then[MATRIX];
            get_link(s->field, site, mu, now);
            get_link(&saved, site, mu, then);
            for (int c = 0; c < MATRIX; c++)
                if (!(fabs(now[c] - then[c]) <= largest))
                    largest = fabs(now[c] - then[c]);
        }
    while (next_site(g, site));
    return largest_over_ranks(largest);
}

static double prove_reversibility(simulation *s)
{
    draw_momenta(s);
    save_links(s->field);
    integrate(s);
    /* Links that have not moved come back whatever the code does, and prove nothing. */
    if (!(difference_from_saved(s) > LEAST_MOVE))
        return 1.0;
    negate_momenta(s->field);
    integrate(s);
    return difference_from_saved(s);
}

/* c = a b, or a b^dagger. */
static void multiply(double *c, const double *a, const double *b, int adjoint)
{
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) {
            double re = 0.0, im = 0.0;
            for (int k = 0; k < 3; k++) {
                const double *x = a + 6 * i + 2 * k;
                const double *y = adjoint ? b + 6 * j + 2 * k : b + 6 * k + 2 * j;
                const double y_im = adjoint ? -y[1] : y[1];
                re += x[0] * y[0] - x[1] * y_im;
                im += x[0] * y_im + x[1] * y[0];
            }
            c[6 * i + 2 * j] = re;
            c[6 * i + 2 * j + 1] = im;
        }
}

/* The transformation of a site, which may be one ahead of the rank's own. */
static void transformation_at(const simulation *s, const int *site, double *matrix)
{
    const geometry *g = s->field->geometry;
    long long number = 0;
    for (int d = DIMENSIONS - 1; d >= 0; d--)
        number = number * g->whole[d] + (g->place[d] * g->own[d] + site[d] - 1) % g->whole[d];
    random_matrix(s->key, number, FOR_TRANSFORMATION, 0, matrix);
}

/* U(x) becomes g(x) U(x) g(x + mu)^dagger, and the momenta, which are drawn here, g H g^dagger. */
static void transform(simulation *s)
{
    int site[DIMENSIONS] = {1, 1, 1, 1};
    do {
        double here[MATRIX], there[MATRIX], link[MATRIX], product[MATRIX];
        transformation_at(s, site, here);
        for (int mu = 0; mu < DIMENSIONS; mu++) {
            int ahead[DIMENSIONS];
            memcpy(ahead, site, sizeof ahead);
            ahead[mu]++;
            transformation_at(s, ahead, there);
            get_link(s->field, site, mu, link);
            multiply(product, here, link, 0);
            multiply(link, product, there, 1);
            set_link(s->field, site, mu, link);
            double h[MOMENTUM];
            get_momentum(s->field, site, mu, h);
            const double full[MATRIX] = {h[0], 0.0,  h[3],  h[4], h[5], h[6], h[3], -h[4], h[1],
                                         0.0,  h[7], h[8],  h[5], -h[6], h[7], -h[8], h[2], 0.0};
            multiply(product, here, full, 0);
            multiply(link, product, here, 1);
            const double turned[MOMENTUM] = {link[0], link[8], link[16], link[2], link[3],
                                             link[4], link[5], link[10], link[11]};
            set_momentum(s->field, site, mu, turned);
        }
    } while (next_site(s->field->geometry, site));
}

/* The plaquette after a trajectory from drawn momenta, and what the energy changed by. */
static void follow(simulation *s, double *plaquette, double *delta_h)
{
    measure_plaquettes(s);
    const double before = kinetic_energy(s), plaquettes = s->plaquettes;
    integrate(s);
    measure_plaquettes(s);
    *delta_h = kinetic_energy(s) - before + s->beta / 3.0 * (plaquettes - s->plaquettes);
    *plaquette = mean_plaquette(s);
}

static double prove_gauge_invariance(simulation *s)
{
    double plaquette[2], delta_h[2];
    draw_momenta(s);
    save_links(s->field);
    follow(s, &plaquette[0], &delta_h[0]);
    restore_links(s->field);
    draw_momenta(s);
    transform(s);
    /* Links that have stayed the same prove nothing. */
    if (!(difference_from_saved(s) > 0.1))
        return 1.0;
    follow(s, &plaquette[1], &delta_h[1]);
    const double links = (double)DIMENSIONS * (double)s->field->geometry->volume;
    const double a = fabs(plaquette[1] - plaquette[0]);
    const double b = fabs(delta_h[1] - delta_h[0]) / links;
    return !(a <= b) ? a : b;
}

double prove(simulation *s, const char *name)
{
    return strcmp(name, "gauge") == 0 ? prove_gauge_invariance(s) : prove_reversibility(s);
}
