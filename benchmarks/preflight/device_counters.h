/* What each network device of a node has carried since it began to count, by the kernel's counters:
 * DIR/class/net/NAME/statistics, which see what passes the kernel, and those of RDMA devices, which see
 * what does not: DIR/class/infiniband/NAME/ports/N and DIR/class/cxi/NAME/device/telemetry. */
#ifndef WYEAST_DEVICE_COUNTERS_H
#define WYEAST_DEVICE_COUNTERS_H

#include <stddef.h>
#include <stdio.h>

#define MOST_DEVICES 256
#define LONGEST_DEVICE 64

/* In bytes; of an RDMA device all its ports together. */
typedef struct {
    char name[LONGEST_DEVICE];
    const char *kind; /* `net`, `infiniband` or `cxi`; devices of two kinds may have one name. */
    unsigned long long sent, received;
} device_count;

typedef struct {
    device_count devices[MOST_DEVICES];
    size_t count;
} device_counts;

/* Count the devices below DIR, which is /sys but in tests. What cannot be read is left out; so is what
 * would be more than MOST_DEVICES. */
void count_devices(const char *dir, device_counts *found);

/* Wait until counters that a driver renews now and then have been: those of cxi devices. Where there is
 * none it returns at once. */
void await_counters(const char *dir);

/* What `later` has more than `earlier` by name; a counter that went back counts as nothing. */
void subtract_devices(device_counts *later, const device_counts *earlier);

/* Print the devices that have sent or received `least` bytes or more as a list of JSON. Each is with
 * those that it lies on or under (bonds, bridges, VLANs), which count the same bytes. */
void print_devices(FILE *out, const char *dir, const device_counts *counted,
                   unsigned long long least);

#endif
