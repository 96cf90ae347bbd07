/* Molecular dynamics of a gauge field: H = sum of tr H^2 / 2 over links plus
 * beta * sum over plaquettes of (1 - Re tr / 3), dU/dtime = iH U. */
#ifndef WYEAST_SIMULATION_H
#define WYEAST_SIMULATION_H

#include "halo_links.h"
#include "philox.h"

/* A step's parts: links move by u[i] of the step and momenta turn by h[i], `stages` times, and links
 * move by `last`. */
typedef struct {
    const char *name;
    int stages;
    double u[4], h[4], last;
} integrator;

typedef struct {
    field *field;
    const kernels *kernels;
    halo_links *halo;
    const integrator *integrator;
    double beta, step_size;
    long long steps;
    int accept;
    philox_key key;
    unsigned long long trajectory; /* Number of the next one, since the start. */
    double plaquettes;             /* Their traces' sum over the whole lattice. */
} simulation;

typedef struct {
    double plaquette; /* Mean of Re tr / 3. */
    double delta_h;
    int accepted;
    double deviation; /* From unitarity, before it is put right; of this rank. */
} trajectory_result;

extern const char *const integrator_names[];
const integrator *find_integrator(const char *name);

/* What random numbers are for: none serves twice. */
typedef enum { FOR_MOMENTA, FOR_LINKS, FOR_ACCEPTANCE, FOR_TRANSFORMATION } purpose;

/* Normal random numbers of a site, direction and trajectory, `blocks` times four. */
void normal_numbers(philox_key key, long long site, unsigned long long trajectory, purpose why,
                    int direction, int blocks, double *numbers);

/* A random matrix of SU(3), uniform by Haar's measure. */
void random_matrix(philox_key key, long long site, purpose why, int direction, double *matrix);

void start_cold(simulation *s);
void start_hot(simulation *s);

/* Exchange borders and sum the plaquettes; before the first trajectory and after other changes. */
void measure_plaquettes(simulation *s);

void draw_momenta(simulation *s);
double kinetic_energy(const simulation *s);
double mean_plaquette(const simulation *s);

/* Integrate over all steps; momenta and links are as they come out. */
void integrate(simulation *s);

/* Draw momenta, integrate, straighten, measure; `accept` puts the links back by Metropolis' rule.
 * Collective, as all of these. */
trajectory_result run_trajectory(simulation *s, int accept);

#endif
