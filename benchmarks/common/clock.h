/* The clock of every program, whatever the MPI: CLOCK_MONOTONIC, which all processes of a node share. */
#ifndef WYEAST_CLOCK_H
#define WYEAST_CLOCK_H

#include <stdint.h>

#define CLOCK_NAME "CLOCK_MONOTONIC"

/* Seconds since this process first asked: on a machine that has been up for long, a double of all
 * its seconds would have steps of some nanoseconds. Ends the program if there is no such clock. */
double seconds_now(void);

/* What the clock read, in nanoseconds, when this process' seconds began. */
int64_t nanoseconds_at_beginning(void);

/* The clock's tick in seconds, as the system states it. */
double clock_tick(void);

/* The smallest step in seconds that a clock was seen to make; 0 if it made none for a second. */
double smallest_step(double (*clock)(void));

/* Text that is equal where two processes read one clock: the host's name, the identifier of the
 * kernel's boot and of the time namespace. Empty where the clock cannot be told from others. */
#define CLOCK_IDENTITY_BYTES 512
void find_clock_identity(char identity[CLOCK_IDENTITY_BYTES]);

#endif
