/* What comes from outside while a rank runs: stops of its process, carriers of its node's links that
 * go and come. Neither is the library's doing. */
#ifndef WYEAST_DISTURBANCES_H
#define WYEAST_DISTURBANCES_H

/* Begin to count; returns 0, or -1 where the kernel lets no signal be counted. */
int begin_disturbances(void);

/* How often this process went on after a stop, since begin_disturbances. */
unsigned long times_stopped(void);

/* How often carriers of links that were there then have gone or come since. */
unsigned long carrier_changes(void);

#endif
