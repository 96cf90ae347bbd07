#include "device_counters.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../common/record_pieces.h"

#define LONGEST_PATH 1024
/* InfiniBand counts what its ports carry in words of four bytes, whatever the link's width
 * (Documentation/ABI/stable/sysfs-class-infiniband of the kernel). */
#define WORD_BYTES 4
/* A cxi driver renews its counters about once a second: they are whole once they have not moved for
 * longer. */
#define STILL_S 2.0
#define AWAIT_S 20.0
#define POLL_NS 100000000L
#define STILL_BYTES 1048576ULL

/* A folder of a class, and how a device of it is counted. */
typedef struct {
    const char *kind, *folder;
    void (*count)(const char *device, device_count *found);
} device_class;

static int joined(char *path, const char *folder, const char *name)
{
    const int length = snprintf(path, LONGEST_PATH, "%s/%s", folder, name);
    return length < 0 || length >= LONGEST_PATH ? -1 : 0;
}

/* 0 of what cannot be read. Slingshot's have the time after the number: 123@1700000000. */
static unsigned long long number_in(const char *folder, const char *name)
{
    char path[LONGEST_PATH];
    unsigned long long number = 0;
    FILE *file = joined(path, folder, name) ? NULL : fopen(path, "r");
    if (!file)
        return 0;
    if (fscanf(file, "%llu", &number) != 1)
        number = 0;
    fclose(file);
    return number;
}

static unsigned long long larger(unsigned long long a, unsigned long long b)
{
    return a > b ? a : b;
}

static void count_net(const char *device, device_count *found)
{
    found->sent = number_in(device, "statistics/tx_bytes");
    found->received = number_in(device, "statistics/rx_bytes");
}

static void count_port(const char *port, device_count *found)
{
    /* Some drivers (EFA's) have theirs in bytes, and only among the device's own counters. */
    found->sent += larger(WORD_BYTES * number_in(port, "counters/port_xmit_data"),
                          number_in(port, "hw_counters/tx_bytes"));
    found->received += larger(WORD_BYTES * number_in(port, "counters/port_rcv_data"),
                              number_in(port, "hw_counters/rx_bytes"));
}

static void count_infiniband(const char *device, device_count *found)
{
    char ports[LONGEST_PATH], port[LONGEST_PATH];
    DIR *folder = joined(ports, device, "ports") ? NULL : opendir(ports);
    for (struct dirent *entry; folder && (entry = readdir(folder));)
        if (entry->d_name[0] != '.' && joined(port, ports, entry->d_name) == 0)
            count_port(port, found);
    if (folder)
        closedir(folder);
}

static void count_cxi(const char *device, device_count *found)
{
    found->sent = number_in(device, "device/telemetry/hni_sts_tx_ok_octets");
    found->received = number_in(device, "device/telemetry/hni_sts_rx_ok_octets");
}

static const device_class net = {"net", "class/net", count_net},
                          infiniband = {"infiniband", "class/infiniband", count_infiniband},
                          cxi = {"cxi", "class/cxi", count_cxi};

static void count_class(const char *dir, const device_class *of, device_counts *found)
{
    char folder[LONGEST_PATH], device[LONGEST_PATH];
    DIR *all = joined(folder, dir, of->folder) ? NULL : opendir(folder);
    for (struct dirent *entry; all && found->count < MOST_DEVICES && (entry = readdir(all));) {
        const size_t length = strlen(entry->d_name);
        if (entry->d_name[0] == '.' || length >= LONGEST_DEVICE ||
            joined(device, folder, entry->d_name))
            continue;
        device_count *one = &found->devices[found->count++];
        memset(one, 0, sizeof *one);
        memcpy(one->name, entry->d_name, length + 1);
        one->kind = of->kind;
        of->count(device, one);
    }
    if (all)
        closedir(all);
}

void count_devices(const char *dir, device_counts *found)
{
    found->count = 0;
    /* RDMA devices first: a node of many containers may have more virtual links than there is room. */
    count_class(dir, &infiniband, found);
    count_class(dir, &cxi, found);
    count_class(dir, &net, found);
}

static const device_count *find_device(const device_counts *counted, const device_count *same)
{
    for (size_t i = 0; i < counted->count; i++) {
        const device_count *one = &counted->devices[i];
        if (one->kind == same->kind && strcmp(one->name, same->name) == 0)
            return one;
    }
    return NULL;
}

static unsigned long long beyond(unsigned long long later, unsigned long long earlier)
{
    return later > earlier ? later - earlier : 0;
}

void subtract_devices(device_counts *later, const device_counts *earlier)
{
    for (size_t i = 0; i < later->count; i++) {
        device_count *one = &later->devices[i];
        const device_count *before = find_device(earlier, one);
        /* One that has come meanwhile began at 0. */
        one->sent = beyond(one->sent, before ? before->sent : 0);
        one->received = beyond(one->received, before ? before->received : 0);
    }
}

static int have_moved(const device_counts *now, const device_counts *before)
{
    device_counts more = *now;
    subtract_devices(&more, before);
    for (size_t i = 0; i < more.count; i++)
        if (larger(more.devices[i].sent, more.devices[i].received) > STILL_BYTES)
            return 1;
    return 0;
}

void await_counters(const char *dir)
{
    const struct timespec pause = {.tv_nsec = POLL_NS};
    const double each = (double)POLL_NS * 1e-9;
    device_counts before = {.count = 0}, now = {.count = 0};
    count_class(dir, &cxi, &before);
    for (double still = 0.0, waited = 0.0; before.count && still < STILL_S && waited < AWAIT_S;
         waited += each) {
        nanosleep(&pause, NULL);
        now.count = 0;
        count_class(dir, &cxi, &now);
        still = have_moved(&now, &before) ? 0.0 : still + each;
        before = now;
    }
}

/* The kernel links a device with those directly above and below it: upper_NAME, lower_NAME. */
static void print_stack(FILE *out, const char *dir, const char *name)
{
    static const char *const kinds[] = {"upper_", "lower_"};
    char folder[LONGEST_PATH], device[LONGEST_PATH];
    const char *separator = "";
    DIR *entries = joined(folder, dir, net.folder) || joined(device, folder, name)
                       ? NULL
                       : opendir(device);
    for (struct dirent *entry; entries && (entry = readdir(entries));)
        for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
            if (strncmp(entry->d_name, kinds[i], strlen(kinds[i])) == 0) {
                fputs(separator, out);
                print_string(out, entry->d_name + strlen(kinds[i]));
                separator = ",";
            }
    if (entries)
        closedir(entries);
}

void print_devices(FILE *out, const char *dir, const device_counts *counted,
                   unsigned long long least)
{
    const char *separator = "";
    fputc('[', out);
    for (size_t i = 0; i < counted->count; i++) {
        const device_count *one = &counted->devices[i];
        if (larger(one->sent, one->received) < least)
            continue;
        fprintf(out, "%s{\"device\":", separator);
        print_string(out, one->name);
        fprintf(out, ",\"kind\":\"%s\",\"sent_bytes\":%llu,\"received_bytes\":%llu,\"stacked\":[",
                one->kind, one->sent, one->received);
        if (one->kind == net.kind)
            print_stack(out, dir, one->name);
        fputs("]}", out);
        separator = ",";
    }
    fputc(']', out);
}
