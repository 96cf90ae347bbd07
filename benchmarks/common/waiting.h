/* How long this rank waits for a processor while others run on it, as the kernel counts. */
#ifndef WYEAST_WAITING_H
#define WYEAST_WAITING_H

/* Of the main thread, which calls the library. `turns` is how often it got a processor; `counted_s`
 * is how long was counted, in seconds, and below 0 where the kernel does not tell. It has no
 * pointers, so that it can be sent as it is. */
typedef struct {
    double counted_s, waited_s, turns;
} processor_wait;

/* Begin to count: after what is not measured, such as the start. */
void begin_waiting(void);

/* What was counted since. */
processor_wait own_waiting(void);

#endif
