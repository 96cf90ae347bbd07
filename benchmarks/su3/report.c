#include "report.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "../common/record_pieces.h"

/* The stated count for a site and step (benchmarks/FORMAT.md), whatever is really calculated. */
enum { FLOPS_OF_FORCE = 10656, FLOPS_OF_UPDATE = 5616 };
/* Fewer values do not know their own spread. */
#define FEWEST_VALUES 8
#define WINDOW_FACTOR 1.5

static double autocovariance(const double *values, size_t count, double mean, size_t distance)
{
    double sum = 0.0;
    for (size_t i = 0; i + distance < count; i++)
        sum += (values[i] - mean) * (values[i + distance] - mean);
    return sum / (double)(count - distance);
}

/* Whether what is summed up to a distance has all of the correlation that is worth its noise: Wolff's
 * criterion, for correlations that fall by the factor e within WINDOW_FACTOR times the integrated time. */
static int window_suffices(double integrated, size_t distance, size_t count)
{
    if (integrated <= 0.5)
        return 1;
    const double time = WINDOW_FACTOR / log((2.0 * integrated + 1.0) / (2.0 * integrated - 1.0));
    return exp(-(double)distance / time) < time / sqrt((double)distance * (double)count);
}

/* The error of a mean of values that depend on those before, by their autocorrelation (Wolff 2004): that of
 * independent values times the root of twice its integrated time, and never less. */
static double error_of_mean(const double *values, size_t count)
{
    if (count < FEWEST_VALUES)
        return 0.0;
    double mean = 0.0, integrated = 0.5;
    for (size_t i = 0; i < count; i++)
        mean += values[i] / (double)count;
    const double variance = autocovariance(values, count, mean, 0);
    if (variance <= 0.0)
        return 0.0;
    size_t distance = 0;
    do {
        distance++;
        integrated += autocovariance(values, count, mean, distance) / variance;
    } while (distance < count / 2 && !window_suffices(integrated, distance, count));
    /* The mean was taken of the same values, which makes all covariances too small. */
    const double unbiased = 1.0 + (2.0 * (double)distance + 1.0) / (double)count;
    const double correlated = 2.0 * integrated * variance * unbiased / (double)count;
    return sqrt(fmax(correlated, variance / (double)(count - 1)));
}

static void print_key(const char *record, const simulation *s)
{
    const int *n = s->field->geometry->whole;
    printf("{\"record\":\"%s\",\"operation\":\"su3\",\"lattice\":[%d,%d,%d,%d]", record, n[0], n[1],
           n[2], n[3]);
}

static void print_setting(const simulation *s)
{
    const geometry *g = s->field->geometry;
    printf(",\"grid\":[%d,%d,%d,%d],\"own_sites\":%lld,\"beta\":%.9g,\"steps\":%lld,"
           "\"step_size\":%.9g,\"integrator\":\"%s\",\"exchange\":\"%s\",\"precision\":\"%s\","
           "\"instructions\":\"%s\"",
           g->grid[0], g->grid[1], g->grid[2], g->grid[3], g->own_volume, s->beta, s->steps,
           s->step_size, s->integrator->name, s->halo->method->name,
           s->kernels->number_bytes == sizeof(double) ? "double" : "single",
           s->kernels->instructions);
}

static void print_list(const char *key, const double *values, size_t count)
{
    printf(",\"%s\":[", key);
    for (size_t i = 0; i < count; i++)
        printf("%s%.17g", i ? "," : "", values[i]);
    fputc(']', stdout);
}

/* The physics; `values` has room for as many numbers as there are trajectories. */
static void print_physics(const measurement *m, double *values)
{
    double plaquette = 0.0, exponential = 0.0;
    size_t accepted = 0;
    for (size_t i = 0; i < m->trajectories; i++) {
        plaquette += m->results[i].plaquette / (double)m->trajectories;
        exponential += exp(-m->results[i].delta_h) / (double)m->trajectories;
        accepted += (size_t)m->results[i].accepted;
        values[i] = m->results[i].plaquette;
    }
    print_list("plaquettes", values, m->trajectories);
    printf(",\"plaquette\":%.17g,\"plaquette_error\":%.9g", plaquette,
           error_of_mean(values, m->trajectories));
    for (size_t i = 0; i < m->trajectories; i++)
        values[i] = m->results[i].delta_h;
    print_list("delta_h", values, m->trajectories);
    /* JSON has no infinity, which a violation of hundreds gives. */
    printf(",\"exp_minus_delta_h\":%.9g,\"accepted\":%zu,\"unitarity_deviation\":%.9g",
           fmin(exponential, DBL_MAX), accepted, m->deviation);
}

int report_simulation(const simulation *s, const measurement *m, int raw)
{
    double *scratch = calloc(m->trajectories, sizeof *scratch);
    if (!scratch)
        return -1;
    const unsigned long long updates = (unsigned long long)s->field->geometry->volume *
                                       (unsigned long long)s->steps *
                                       (unsigned long long)s->integrator->stages *
                                       (unsigned long long)m->trajectories;
    print_key("result", s);
    print_setting(s);
    printf(",\"trajectories\":%zu,\"warmups\":%lld,\"first_trajectory\":%llu,\"start\":\"%s\","
           "\"accept\":%s",
           m->trajectories, m->warmups, m->first, m->hot ? "hot" : "cold",
           m->accept ? "true" : "false");
    print_physics(m, scratch);
    const time_summary summary = summarise(m->times, m->trajectories, scratch);
    fputs(",\"time_s\":", stdout);
    print_summary(stdout, &summary);
    fputs(",\"wall_s\":", stdout);
    print_seconds(stdout, m->wall);
    fputs(",\"cpu_by_rank_s\":", stdout);
    print_seconds_of_each(stdout, m->cpu, m->ranks);
    fputs(",\"exchange_by_rank_s\":", stdout);
    print_seconds_of_each(stdout, m->exchange, m->ranks);
    printf(",\"site_updates\":%llu,\"flops\":%llu,\"moved_bytes\":%llu,\"verified_bytes\":%llu}\n",
           updates, updates * (FLOPS_OF_FORCE + FLOPS_OF_UPDATE), m->moved, m->verified);
    if (raw) {
        print_key("iterations", s);
        fputs(",\"time_s\":", stdout);
        print_seconds_of_each(stdout, m->times, m->trajectories);
        fputs("}\n", stdout);
    }
    free(scratch);
    return 0;
}

void report_proof(const simulation *s, const char *name, double deviation)
{
    const int *n = s->field->geometry->whole;
    printf("{\"record\":\"result\",\"operation\":\"su3_proof\",\"proof\":\"%s\","
           "\"lattice\":[%d,%d,%d,%d]", name, n[0], n[1], n[2], n[3]);
    print_setting(s);
    printf(",\"deviation\":%.9g}\n", deviation);
}
