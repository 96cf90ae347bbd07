/* How long this rank waits for a processor while others run on it, as the kernel counts. */
#ifndef WYEAST_WAITING_H
#define WYEAST_WAITING_H

/* Of a thread that calls the library. `turns` is how often it got a processor; `counted_s` is how
 * long was counted, in seconds, and below 0 where the kernel does not tell. It has no pointers, so
 * that it can be sent as it is. */
typedef struct {
    double counted_s, waited_s, turns;
} processor_wait;

/* The part of its time in which it waited. */
double waited_share(const processor_wait *one);

/* How long a message that comes at any moment waits for the thread, in seconds, on average
 * (benchmarks/FORMAT.md). */
double wait_of_message(const processor_wait *one);

/* Begin to count for the main thread: after what is not measured, such as the start. */
void begin_waiting(void);

/* Count for another thread, which calls both of these, and then the main one the third. */
processor_wait begin_waiting_of_thread(void);
processor_wait waiting_of_thread(processor_wait begun);
void add_waiting_of_thread(processor_wait counted);

/* What was counted since for the thread for which a message waits longest. */
processor_wait own_waiting(void);

#endif
