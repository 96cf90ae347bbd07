#include "disturbances.h"

#include <dirent.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define LINKS "/sys/class/net"
#define MOST_LINKS 64
#define LONGEST_NAME 64

typedef struct {
    char name[LONGEST_NAME];
    unsigned long changes;
} carrier;

static volatile sig_atomic_t stopped;
static carrier carriers[MOST_LINKS];
static size_t links;
static int has_links;

/* Links that come and go with containers and virtual machines, and the machine's own. */
static const char *const passing[] = {"lo", "veth", "docker", "br-", "virbr", "cni", "tap", "ifb"};

static void count_stop(int number)
{
    (void)number;
    stopped++;
}

static int is_passing(const char *name)
{
    for (size_t i = 0; i < sizeof passing / sizeof *passing; i++)
        if (strncmp(name, passing[i], strlen(passing[i])) == 0)
            return 1;
    return 0;
}

/* Returns 0, or -1 where the kernel does not say. */
static int read_changes(const char *name, unsigned long *changes)
{
    char path[sizeof LINKS + LONGEST_NAME + sizeof "//carrier_changes"];
    const int length = snprintf(path, sizeof path, LINKS "/%s/carrier_changes", name);
    if (length < 0 || (size_t)length >= sizeof path)
        return -1;
    FILE *file = fopen(path, "r");
    if (!file)
        return -1;
    const int found = fscanf(file, "%lu", changes);
    fclose(file);
    return found == 1 ? 0 : -1;
}

int begin_stops(void)
{
    stopped = 0;
    struct sigaction action = {.sa_handler = count_stop, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    return sigaction(SIGCONT, &action, NULL);
}

int begin_disturbances(void)
{
    links = 0;
    has_links = 1;
    DIR *folder = opendir(LINKS);
    for (struct dirent *entry; folder && links < MOST_LINKS && (entry = readdir(folder));) {
        carrier *here = &carriers[links];
        const size_t length = strlen(entry->d_name);
        if (entry->d_name[0] == '.' || length >= LONGEST_NAME || is_passing(entry->d_name))
            continue;
        memcpy(here->name, entry->d_name, length + 1);
        if (read_changes(here->name, &here->changes) == 0)
            links++;
    }
    if (folder)
        closedir(folder);
    return begin_stops();
}

static long carrier_changes(void)
{
    long all = 0;
    for (size_t i = 0; i < links; i++) {
        unsigned long now;
        if (read_changes(carriers[i].name, &now) == 0 && now > carriers[i].changes)
            all += (long)(now - carriers[i].changes);
    }
    return all;
}

disturbances own_disturbances(void)
{
    return (disturbances){(long)stopped, has_links ? carrier_changes() : -1};
}
