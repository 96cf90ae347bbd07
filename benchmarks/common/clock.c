#include "clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define NANOSECONDS 1000000000
/* How long a clock is looked at: one that steps seldom, as one of 1/256 s, is seen to do so, and one
 * that stands still is not waited for. */
#define CLOCK_READINGS 1000
#define LONG_ENOUGH_S 0.05
#define LONGEST_LOOK_S 1.0

static int64_t beginning;
static int begun;

static int64_t nanoseconds_now(void)
{
    struct timespec now;
    if (clock_gettime(CLOCK_MONOTONIC, &now) != 0) {
        perror(CLOCK_NAME);
        abort();
    }
    return (int64_t)now.tv_sec * NANOSECONDS + now.tv_nsec;
}

double seconds_now(void)
{
    const int64_t now = nanoseconds_now();
    if (!begun) {
        beginning = now;
        begun = 1;
    }
    return (double)(now - beginning) / NANOSECONDS;
}

int64_t nanoseconds_at_beginning(void)
{
    (void)seconds_now();
    return beginning;
}

double clock_tick(void)
{
    struct timespec tick;
    if (clock_getres(CLOCK_MONOTONIC, &tick) != 0) {
        perror(CLOCK_NAME);
        abort();
    }
    return (double)tick.tv_sec + (double)tick.tv_nsec / NANOSECONDS;
}

double smallest_step(double (*clock)(void))
{
    const double began = seconds_now();
    double smallest = 0.0, lasted = 0.0;
    for (int i = 0; i < CLOCK_READINGS && lasted < (smallest > 0.0 ? LONG_ENOUGH_S : LONGEST_LOOK_S);
         i++) {
        double before = clock(), after = before;
        while (after <= before && lasted < LONGEST_LOOK_S) {
            after = clock();
            lasted = seconds_now() - began;
        }
        if (after > before && (smallest == 0.0 || after - before < smallest))
            smallest = after - before;
    }
    return smallest;
}

/* The host's name is in it since a virtual machine that was copied while it ran has its boot's
 * identifier too. A kernel without time namespaces has one clock. */
void find_clock_identity(char identity[CLOCK_IDENTITY_BYTES])
{
    char host[256] = "", boot[64] = "", space[64] = "";
    identity[0] = '\0';
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "r");
    const int known = file && fgets(boot, sizeof boot, file) && boot[0];
    if (file)
        fclose(file);
    if (!known || gethostname(host, sizeof host - 1) != 0)
        return;
    boot[strcspn(boot, "\n")] = '\0';
    if (readlink("/proc/self/ns/time", space, sizeof space - 1) < 0)
        space[0] = '\0';
    snprintf(identity, CLOCK_IDENTITY_BYTES, "%s %s %s", host, boot, space);
}
