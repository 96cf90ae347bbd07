/* Two tasks of PVM, on two hosts where the virtual machine has them, and messages between them. */
#ifndef WYEAST_PVM_PAIR_H
#define WYEAST_PVM_PAIR_H

#include <stddef.h>

#include "../common/arguments.h"

/* By which calls a message is moved. */
typedef enum {
    BY_SEND,          /* pvm_send of a copy (PvmDataRaw), pvm_recv and pvm_upkbyte */
    BY_SEND_IN_PLACE, /* the same, but packed in place (PvmDataInPlace) */
    BY_PSEND          /* pvm_psend and pvm_precv; PVM 3.4.6 packs in rank_place here, too */
} message_calls;

typedef enum { ROUTE_DIRECT, ROUTE_DAEMON } message_route;

typedef struct {
    int number; /* Of this task: 0 started the other one. */
    int other;  /* The other one's task identifier. */
    message_route route;
} task_pair;

/* Join the virtual machine. Task 0 starts the other with the same arguments, on another host if
 * there is one. All functions return 0, or -1 with a sentence. */
int join_pair(task_pair *pair, message_route route, char **argv, complaint *about);

int send_message(const task_pair *pair, message_calls calls, const void *data, size_t bytes,
                 complaint *about);

/* Receive a message of exactly so many bytes; the other task's end is a fault like any other. */
int receive_message(const task_pair *pair, message_calls calls, void *data, size_t bytes,
                    complaint *about);

/* Verify that messages take the requested route: PVM falls back to its daemons silently. */
int check_route(const task_pair *pair, complaint *about);

/* Leave the virtual machine. A sentence of task 1 is handed to task 0, which is the one to say it. */
void leave_pair(const task_pair *pair, const char *sentence);

#endif
