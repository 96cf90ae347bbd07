/* The eight send/receive pairs of Kearns 2003, Table 10, in both orders. */
#ifndef WYEAST_EXCHANGE_H
#define WYEAST_EXCHANGE_H

#include <mpi.h>
#include <stddef.h>

typedef struct {
    const char *name;
    int send_nonblocking, send_synchronous, receive_nonblocking;
} send_receive_pair;

extern const char *const pair_names[];

/* The pair of a name, or NULL. */
const send_receive_pair *find_pair(const char *name);

/* How the echoing rank treats a non-blocking receive: `modified` waits for it before it replies,
 * `original` replies first and waits afterwards, so that two messages are under way at once and
 * the round trip is not one (thesis, section 4.3.1). Pairs with MPI_Recv know no difference. */
typedef enum { ORDER_MODIFIED, ORDER_ORIGINAL } echo_order;

/* `count` of `type` at each of two buffers, so that both orders are legal MPI. */
typedef struct {
    unsigned char *send, *receive;
    int count;
    MPI_Datatype type;
} message;

/* One round trip seen from rank 0, and its echo seen from rank 1. */
void send_and_await(const send_receive_pair *pair, const message *message);
void echo(const send_receive_pair *pair, echo_order order, const message *message);

#endif
