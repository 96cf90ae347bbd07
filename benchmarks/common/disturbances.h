/* What comes from outside while a rank runs: stops of its process, carriers of its node's links that
 * go and come. Neither is the library's doing. */
#ifndef WYEAST_DISTURBANCES_H
#define WYEAST_DISTURBANCES_H

/* How often a process went on after a stop, and how often a carrier has gone or come: below 0 where
 * that was not counted. */
typedef struct {
    long stopped, carriers;
} disturbances;

/* Begin to count stops, which is one call of the system; returns 0, or -1 where the kernel lets no
 * signal be counted. */
int begin_stops(void);

/* Begin to count stops, and carriers of the links that are there; returns what begin_stops does. */
int begin_disturbances(void);

/* What this process has counted since. */
disturbances own_disturbances(void);

/* What all ranks have: stops of all together, carriers of the node where that happened most, since
 * ranks of a node have the same links. Only rank 0 gets it. Every rank must call it. */
disturbances disturbances_of_all_ranks(void);

#endif
