/* What the two ranks of an echo have of each other, however the bytes go. */
#ifndef WYEAST_PARTNER_H
#define WYEAST_PARTNER_H

#include <stddef.h>
#include <stdint.h>

/* The longest a rank waits without a sign of the other, in seconds: then it is gone. */
#define LONGEST_SILENCE_S 60

typedef struct shared_region shared_region;

typedef struct {
    int rank;
    size_t bytes; /* Of a message. */
    int numbered; /* Whether each begins with the number of its echo, as long datagrams do. */
    /* Rank 0 sends from one and receives into the other; rank 1 echoes from where it received. */
    unsigned char *send, *receive;
    unsigned char *spare; /* What comes after the last message of some. */
    uint64_t sequence;    /* Counts the echoes, alike on both ranks. */
    int datagrams, stream; /* Sockets; -1: none. */
    shared_region *region; /* NULL: none. */
    /* Of datagrams, on rank 0. */
    unsigned long long echoes, sent_again;
    unsigned long long doubled; /* 1: more echoes came than messages went, without a number. */
} partner;

#endif
