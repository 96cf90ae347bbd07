#include "computing.h"

#include <math.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include "../common/clock.h"
#include "../common/split_mix.h"

#define PI 3.14159265358979323846
/* Above it more than a fortieth of the normal distribution lies below 0. */
#define LARGEST_NORMAL_DEVIATION 0.5
/* A uniform distribution that begins at 0 has the standard deviation mean/sqrt(3). */
#define LARGEST_UNIFORM_DEVIATION 0.57735026918962584
#define LARGEST_LOGNORMAL_DEVIATION 10.0
/* Between two looks at the clock: a microsecond at most, and much longer than a look takes. */
#define OPERATIONS_AT_ONCE 200

const char *const distribution_names[] = {"constant",  "exponential", "normal",
                                          "uniform", "lognormal",   NULL};
const char *const compute_names[] = {"busy", "sleep", NULL};

int check_computing(const computing *how, complaint *about)
{
    double most = 0.0;
    if (strcmp(how->distribution, "normal") == 0)
        most = LARGEST_NORMAL_DEVIATION;
    else if (strcmp(how->distribution, "uniform") == 0)
        most = LARGEST_UNIFORM_DEVIATION;
    else if (strcmp(how->distribution, "lognormal") == 0)
        most = LARGEST_LOGNORMAL_DEVIATION;
    if (most == 0.0 && how->deviation != 0.0)
        return complain(about, "--compute-deviation: the distribution %s has its own",
                        how->distribution);
    if (most != 0.0 && !(how->deviation > 0.0 && how->deviation <= most))
        return complain(about, "--compute-deviation %g: with the distribution %s it must be "
                               "greater than 0 and at most %.6g", how->deviation,
                        how->distribution, most);
    return 0;
}

/* A number greater than 0 and less than 1. */
static double next_uniform(uint64_t *state)
{
    return ((double)(next_number(state) >> 11) + 0.5) * 0x1p-53;
}

/* The transform of Box and Muller; its second number is not kept. */
static double next_normal(uint64_t *state)
{
    const double radius = sqrt(-2.0 * log(next_uniform(state)));
    return radius * cos(2.0 * PI * next_uniform(state));
}

static double draw(const computing *how, double mean, uint64_t *state)
{
    if (strcmp(how->distribution, "exponential") == 0)
        return -mean * log(next_uniform(state));
    if (strcmp(how->distribution, "uniform") == 0)
        return mean * (1.0 + how->deviation * sqrt(3.0) * (2.0 * next_uniform(state) - 1.0));
    if (strcmp(how->distribution, "lognormal") == 0) {
        const double variance = log1p(how->deviation * how->deviation);
        return mean * exp(sqrt(variance) * next_normal(state) - variance / 2.0);
    }
    if (strcmp(how->distribution, "normal") == 0) {
        double factor;
        do
            factor = 1.0 + how->deviation * next_normal(state);
        while (factor < 0.0);
        return mean * factor;
    }
    return mean;
}

void draw_computing(const computing *how, int application, int rank, unsigned long long run,
                    double mean, double *times, size_t steps)
{
    uint64_t state = mixed(how->seed + SPLIT_MIX_STEP);
    state = mixed(state + (uint64_t)application + 1);
    state = mixed(state + (uint64_t)rank + 1);
    state = mixed(state + run + 1);
    for (size_t step = 0; step < steps; step++) {
        const double time = draw(how, mean, &state);
        times[step] = time > 0.0 ? time : 0.0; /* Rounding may carry a uniform one below 0. */
    }
}

static void sleep_for(double seconds)
{
    struct timespec time = {.tv_sec = (time_t)seconds};
    time.tv_nsec = (long)((seconds - (double)time.tv_sec) * 1e9);
    (void)nanosleep(&time, NULL);
}

double compute_until(const computing *how, double begin, double seconds)
{
    static volatile double result = 1.0;
    const double end = begin + seconds;
    double now = seconds_now();
    while (now < end && now >= begin) {
        if (how->sleeps) {
            sleep_for(end - now);
        } else {
            double value = result;
            for (int i = 0; i < OPERATIONS_AT_ONCE; i++)
                value = value * 0.999999 + 1e-6;
            result = value;
        }
        now = seconds_now();
    }
    return now;
}
