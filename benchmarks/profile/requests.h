/* What is still to be counted of requests that are under way, by their handles. */
#ifndef WYEAST_PROFILE_REQUESTS_H
#define WYEAST_PROFILE_REQUESTS_H

#include <stdbool.h>
#include <stdint.h>

#include "communicators.h"

typedef enum {
    AWAITS_RECEIVE,     /* The status will tell size and sender. */
    AWAITS_UNSEEN,      /* No status will tell it. */
    AWAITS_MESSAGE,     /* Matched by a probe: a handle of a message, not of a request. */
    AWAITS_SEND,        /* Each start sends. */
    AWAITS_RECEPTION,   /* Each completion has received. */
    AWAITS_PARTITIONS,  /* Each completion has received what was known beforehand. */
    AWAITS_COLLECTIVE,  /* Each start gives. */
} awaited_kind;

typedef struct {
    uintptr_t handle;
    awaited_kind kind;
    bool started;          /* Of AWAITS_PARTITIONS. */
    group_of_ranks *group; /* Of the communicator, kept. */
    int peer;              /* Rank of MPI_COMM_WORLD, where it is known. */
    uint64_t bytes;
} awaited;

/* Note something; what had the handle before is forgotten, unless several threads call MPI. Returns
 * false where memory ran out. */
bool note_awaited(awaited one);

/* Copy what was noted of a handle that is through. What is not persistent is forgotten, and its group
 * is the caller's to release. */
bool complete_awaited(uintptr_t handle, awaited *found);

/* Forget a handle. Returns whether a receive was under way. */
bool forget_awaited(uintptr_t handle);

/* Note whether something was started; returns what was noted before. */
bool mark_started(uintptr_t handle, bool started);

/* Forget all; returns how many receives were never completed. */
uint64_t free_awaited(void);

#endif
