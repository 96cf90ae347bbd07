/* Round trips that show roughly how ranks talk. Every rank but 0 times them with one other: those of a host
 * with the lowest one there, one after another; and the lowest ones of all hosts in a binomial tree under
 * rank 0, many pairs at once. So it takes the longer by the ranks of a host and by the logarithm of the
 * number of hosts. */
#ifndef WYEAST_TRIPS_H
#define WYEAST_TRIPS_H

#include <stddef.h>

#include "../common/ranks_alike.h"
#include "../common/summary.h"

#define SHORT_BYTES 8
#define LONG_BYTES 1000000
#define WARMUP ((size_t)2)
#define HOST_LENGTH 256

/* Where a rank is. Two machines may have one name, and one machine may play several hosts, each
 * with its own name; the identifier of the kernel's boot tells machines apart. */
typedef struct {
    char name[HOST_LENGTH];
    char boot[64]; /* Empty where it cannot be read. */
} host;

/* What rank `to` measured with rank `from`, in seconds. */
typedef struct {
    int from, to; /* `to` is below 0 of a rank that measured nothing. */
    host there, here;
    time_summary brief, full; /* With messages of SHORT_BYTES and of LONG_BYTES. */
} trip;

/* How often, and room for it: LONG_BYTES, and as many times as there are brief trips. */
typedef struct {
    size_t brief, full;
    char *buffer;
    double *times, *scratch;
} trip_plan;

/* Collective over MPI_COMM_WORLD. */
trip time_trips(const host *own, const ranks_alike *of_host, const trip_plan *plan);

/* How many messages a host's lowest rank exchanges for this at most, in a world of so many hosts. */
unsigned long long messages_of_leader(unsigned long long ranks_of_host, unsigned long long hosts,
                                      const trip_plan *plan);

/* How many bytes one rank sends to another one that it exchanges these messages with; it gets as many. */
unsigned long long bytes_of_pair(const trip_plan *plan);

/* With how many other hosts a host exchanges them, by the place of its lowest rank among those of all. */
int hosts_met(int leader, int hosts);

/* Return on rank 0 what the ranks measured, in their order, to be freed; NULL elsewhere, and on rank 0
 * where memory ran out. In a world of more than `most_listed` ranks a host tells only what its lowest
 * rank measured, and the slowest of its others. Collective over MPI_COMM_WORLD. */
trip *gather_trips(const trip *own, const ranks_alike *of_host, int most_listed, size_t *count);

/* How many trips a host tells of, and so what rank 0 reserves for each host. */
size_t trips_told(int ranks_of_host, int ranks, int most_listed);

#endif
