/* Echoes of UDP datagrams, with those that are lost sent again. */
#ifndef WYEAST_DATAGRAMS_H
#define WYEAST_DATAGRAMS_H

/* What IPv4 leaves of 65,535 bytes after its header and UDP's. */
#define LARGEST_DATAGRAM 65507

/* From here on a datagram begins with the number of its echo, so that a late or second echo is not
 * taken for the current one. Below, what comes late is thrown away after something was lost. */
#define SHORTEST_NUMBERED 8

/* After so long without an echo a datagram counts as lost. */
#define LOST_AFTER_S 0.5
/* After a loss nothing may come for so long, where a late echo would be taken for the next one. It is
 * far longer than what is late by: a machine of many guests stops one for half a second. */
#define QUIET_AFTER_LOSS_S 2

/* Of all echoes, in percent: a launch that lost more measures losses, not the network. */
#define MOST_LOST_PERCENT 1

/* Of an operation; the context is a partner. A failure ends all ranks with a sentence. */
void echo_datagram(void *context);
void settle_datagrams(void *context);

#endif
