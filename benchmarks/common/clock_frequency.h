/* How many cycles a second this rank's core makes, as seen and not as written in its data sheet. */
#ifndef WYEAST_CLOCK_FREQUENCY_H
#define WYEAST_CLOCK_FREQUENCY_H

/* Hz, within a per cent on a core that nothing else uses. Takes about half a millisecond. */
double clock_frequency(void);

#endif
