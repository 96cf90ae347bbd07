/* Which devices of each host carried the messages that its ranks have exchanged, and which share of them
 * the ranks copied themselves. */
#ifndef WYEAST_FABRIC_H
#define WYEAST_FABRIC_H

#include "../common/ranks_alike.h"
#include "device_counters.h"

/* What a host's ranks exchange between two looks: in bytes, as often sent as received. */
typedef struct {
    unsigned long long between; /* From here to other hosts, and as many from there. */
    unsigned long long within;  /* From a rank to another one of this host, all together. */
} known_volume;

typedef struct {
    const char *sys; /* The folder that devices are found below. */
    device_counts counted;
    unsigned long long copied;
} fabric_look;

/* Look at a host's devices before messages are exchanged: no rank begins to before all have looked.
 * Collective over MPI_COMM_WORLD. */
void begin_fabric(fabric_look *look, const char *sys, const ranks_alike *of_host);

/* Look again once all messages have been exchanged, and print a record for each host, in order of their
 * lowest ranks. Returns how many that are, or -1 where memory ran out; on other ranks than 0 it is 0.
 * Collective over MPI_COMM_WORLD. */
long end_fabric(fabric_look *look, const known_volume *volume, const ranks_alike *of_host);

#endif
