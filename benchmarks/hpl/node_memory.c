#include "node_memory.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Lower `bytes` to the limit in a file of a control group's folder, if there is one. */
static void heed(const char *root, const char *group, const char *file, double *bytes)
{
    char path[4096];
    int length = snprintf(path, sizeof path, "%s%s/%s", root, group, file);
    if (length < 0 || (size_t)length >= sizeof path)
        return;
    FILE *limit = fopen(path, "r");
    if (!limit)
        return;
    double allowed; /* The file says `max` where there is no limit. */
    if (fscanf(limit, "%lf", &allowed) == 1 && allowed < *bytes)
        *bytes = allowed;
    fclose(limit);
}

double memory_of_control_group(void)
{
    double bytes = INFINITY;
    FILE *groups = fopen("/proc/self/cgroup", "r");
    if (!groups)
        return bytes;
    char *line = NULL;
    size_t room = 0;
    /* Lines are hierarchy:controllers:group; version 2 has the hierarchy 0 without controllers. */
    while (getline(&line, &room, groups) > 0) {
        line[strcspn(line, "\n")] = '\0';
        char *controllers = strchr(line, ':');
        char *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group)
            continue;
        *group++ = '\0';
        int second = strcmp(line, "0:") == 0;
        if (!second && !strstr(controllers, "memory"))
            continue;
        /* Every group above this one may be narrower. */
        for (;;) {
            if (second)
                heed("/sys/fs/cgroup", group, "memory.max", &bytes);
            else
                heed("/sys/fs/cgroup/memory", group, "memory.limit_in_bytes", &bytes);
            char *end = strrchr(group, '/');
            if (!end)
                break;
            *end = '\0';
        }
    }
    free(line);
    fclose(groups);
    return bytes;
}

double memory_of_node(void)
{
    double bytes = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    double allowed = memory_of_control_group();
    return allowed < bytes ? allowed : bytes;
}
