/* Where the two ranks reach each other by IPv4, found by trying. */
#ifndef WYEAST_ADDRESSES_H
#define WYEAST_ADDRESSES_H

#include <netinet/in.h>

#include "../common/arguments.h"

/* A connected stream, which shows that two addresses reach each other, and these addresses. */
typedef struct {
    int stream;
    struct in_addr own, other;
} connection;

/* Connect ranks 0 and 1: by the address that rank 0's node knows for the name of rank 1's, else by
 * one of that node's own. `same_host`: loopback addresses reach it too. Collective over
 * MPI_COMM_WORLD. Returns 0, or -1 with a sentence on both ranks. */
int connect_ranks(int same_host, connection *found, complaint *about);

/* A datagram socket between the addresses of a connection, which takes datagrams of the other rank
 * alone. Collective. Returns it, or -1 with a sentence on both ranks. */
int open_datagrams(const connection *over, complaint *about);

#endif
