/* The comparison for su3: the same physics as one writes it down, an array of structures and one
 * site after the other, on one processor. It is also a second opinion: its numbers must be su3's
 * to rounding. */
#include <complex.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "../common/options.h"
#include "../common/record_pieces.h"
#include "../common/written.h"
#include "philox.h"

typedef struct {
    double complex e[3][3];
} matrix;

typedef struct {
    matrix link[4], momentum[4];
} site;

static long long sides[4], trajectories, steps, seed;
static double beta, step_size;

#define SIDE(letter, number)                                                                       \
    {.name = "n" letter, .kind = OPTION_NUMBER, .value = &sides[number], .initial = "8",           \
     .least = 2, .most = 256, .help = "sites of the lattice in " letter}

static const option options[] = {
    SIDE("x", 0),
    SIDE("y", 1),
    SIDE("z", 2),
    SIDE("t", 3),
    {.name = "beta", .kind = OPTION_FRACTION, .value = &beta, .initial = "5.6", .most = 1000,
     .help = "inverse coupling"},
    {.name = "trajectories", .kind = OPTION_NUMBER, .value = &trajectories, .initial = "2",
     .least = 1, .most = 1000000, .help = "from a cold start, by leapfrog"},
    {.name = "steps", .kind = OPTION_NUMBER, .value = &steps, .initial = "10", .least = 1,
     .most = 1000000, .help = "of a trajectory"},
    {.name = "step-size", .kind = OPTION_FRACTION, .value = &step_size, .initial = "0.05",
     .most = 1, .help = "of a step"},
    {.name = "seed", .kind = OPTION_NUMBER, .value = &seed, .initial = "1", .least = 0,
     .most = 1000000000, .help = "of the random numbers"},
};

static const program_description program = {
    "su3_naive", "su3_naive: an ordinary lattice gauge code to compare su3 with; one process.\n",
    "su3_naive --nx 8 --ny 8 --nz 8 --nt 8", options, sizeof options / sizeof options[0]};

static site *lattice;
static size_t volume;

static double seconds(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static size_t neighbour(size_t number, int direction, int step)
{
    size_t stride = 1;
    for (int d = 0; d < direction; d++)
        stride *= (size_t)sides[d];
    const size_t side = (size_t)sides[direction], at = number / stride % side;
    const size_t there = step > 0 ? (at + 1) % side : (at + side - 1) % side;
    return number + there * stride - at * stride;
}

static void multiply(matrix *c, const matrix *a, const matrix *b)
{
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            c->e[i][j] = a->e[i][0] * b->e[0][j] + a->e[i][1] * b->e[1][j] +
                         a->e[i][2] * b->e[2][j];
}

static void multiply_adjoint(matrix *c, const matrix *a, const matrix *b)
{
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            c->e[i][j] = a->e[i][0] * conj(b->e[j][0]) + a->e[i][1] * conj(b->e[j][1]) +
                         a->e[i][2] * conj(b->e[j][2]);
}

static void adjoint_multiply(matrix *c, const matrix *a, const matrix *b)
{
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            c->e[i][j] = conj(a->e[0][i]) * b->e[0][j] + conj(a->e[1][i]) * b->e[1][j] +
                         conj(a->e[2][i]) * b->e[2][j];
}

static void add(matrix *sum, const matrix *a, double complex factor)
{
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            sum->e[i][j] += factor * a->e[i][j];
}

/* Momenta are anti-Hermitian here: dU/dtime = P U. */
static void turn(double step)
{
    for (size_t x = 0; x < volume; x++)
        for (int mu = 0; mu < 4; mu++) {
            matrix sum = {{{0}}}, product, staple, force;
            const size_t ahead = neighbour(x, mu, 1);
            for (int nu = 0; nu < 4; nu++) {
                if (nu == mu)
                    continue;
                const size_t up = neighbour(x, nu, 1), down = neighbour(x, nu, -1);
                multiply_adjoint(&product, &lattice[ahead].link[nu], &lattice[up].link[mu]);
                multiply_adjoint(&staple, &product, &lattice[x].link[nu]);
                add(&sum, &staple, 1.0);
                multiply(&product, &lattice[down].link[mu],
                         &lattice[neighbour(ahead, nu, -1)].link[nu]);
                adjoint_multiply(&staple, &product, &lattice[down].link[nu]);
                add(&sum, &staple, 1.0);
            }
            multiply(&product, &lattice[x].link[mu], &sum);
            const double trace = cimag(product.e[0][0] + product.e[1][1] + product.e[2][2]);
            for (int i = 0; i < 3; i++)
                for (int j = 0; j < 3; j++)
                    force.e[i][j] = 0.5 * (product.e[i][j] - conj(product.e[j][i])) -
                                    (i == j ? I * trace / 3.0 : 0.0);
            add(&lattice[x].momentum[mu], &force, -step * beta / 3.0);
        }
}

static void move(double step)
{
    for (size_t x = 0; x < volume; x++)
        for (int mu = 0; mu < 4; mu++) {
            /* The series by Horner's rule, applied to the link: as many products as the stated
             * count of operations has. */
            const matrix link = lattice[x].link[mu];
            matrix sum = link, product;
            for (int term = 7; term >= 1; term--) {
                multiply(&product, &lattice[x].momentum[mu], &sum);
                sum = link;
                add(&sum, &product, step / term);
            }
            lattice[x].link[mu] = sum;
        }
}

static double plaquettes(void)
{
    double total = 0.0;
    for (size_t x = 0; x < volume; x++)
        for (int mu = 0; mu < 4; mu++)
            for (int nu = mu + 1; nu < 4; nu++) {
                matrix a, b;
                multiply(&a, &lattice[x].link[mu], &lattice[neighbour(x, mu, 1)].link[nu]);
                multiply(&b, &lattice[x].link[nu], &lattice[neighbour(x, nu, 1)].link[mu]);
                for (int i = 0; i < 3; i++)
                    for (int j = 0; j < 3; j++)
                        total += creal(a.e[i][j] * conj(b.e[i][j]));
            }
    return total;
}

static void draw_momenta(unsigned int trajectory)
{
    const double half = sqrt(0.5), third = sqrt(1.0 / 3.0);
    for (size_t x = 0; x < volume; x++)
        for (unsigned int mu = 0; mu < 4; mu++) {
            double g[8];
            for (unsigned int i = 0; i < 8; i += 2) {
                const philox_block r = philox(
                    (philox_block){{(uint32_t)x, (uint32_t)(x >> 32), trajectory, mu * 4 + i / 4}},
                    (philox_key){{(uint32_t)seed, 0}});
                const double length = sqrt(-2.0 * log((r.word[i % 4] + 1.0) * 0x1p-32));
                const double angle = 6.283185307179586 * 0x1p-32 * r.word[i % 4 + 1];
                g[i] = length * cos(angle);
                g[i + 1] = length * sin(angle);
            }
            matrix *p = &lattice[x].momentum[mu];
            p->e[0][0] = I * half * (g[6] + third * g[7]);
            p->e[1][1] = I * half * (third * g[7] - g[6]);
            p->e[2][2] = -2.0 * I * half * third * g[7];
            p->e[0][1] = I * half * (g[0] + I * g[1]);
            p->e[0][2] = I * half * (g[2] + I * g[3]);
            p->e[1][2] = I * half * (g[4] + I * g[5]);
            p->e[1][0] = -conj(p->e[0][1]);
            p->e[2][0] = -conj(p->e[0][2]);
            p->e[2][1] = -conj(p->e[1][2]);
        }
}

static void run(void)
{
    for (size_t x = 0; x < volume; x++)
        for (int mu = 0; mu < 4; mu++)
            for (int i = 0; i < 3; i++)
                lattice[x].link[mu].e[i][i] = 1.0;
    const double began = seconds(CLOCK_MONOTONIC), cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
    fputs("{\"plaquettes\":[", stdout);
    for (long long i = 0; i < trajectories; i++) {
        draw_momenta((unsigned int)i);
        for (long long step = 0; step < steps; step++) {
            move(step == 0 ? 0.5 * step_size : step_size);
            turn(step_size);
        }
        move(0.5 * step_size);
        printf("%s%.17g", i ? "," : "", plaquettes() / (18.0 * (double)volume));
    }
    const double wall = seconds(CLOCK_MONOTONIC) - began;
    printf("],\"site_updates\":%lld,\"wall_s\":%.9e,\"cpu_s\":%.9e}\n",
           (long long)volume * steps * trajectories, wall,
           seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu);
}

int main(int argc, char **argv)
{
    complaint about;
    asked_for asked;
    if (parse_options(&program, argc, argv, &asked, &about)) {
        fprintf(stderr, "%s: %s\n", program.name, about.text);
        return 2;
    }
    if (asked != ASKED_RUN) {
        print_help(stdout, &program);
        return see_output_written(program.name) ? 1 : 0;
    }
    volume = (size_t)(sides[0] * sides[1] * sides[2] * sides[3]);
    lattice = calloc(volume, sizeof *lattice);
    if (!lattice) {
        fprintf(stderr, "%s: no memory for %zu sites\n", program.name, volume);
        return 1;
    }
    run();
    free(lattice);
    return 0;
}
