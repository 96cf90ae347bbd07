#include "addresses.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <mpi.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "datagrams.h"
#include "partner.h"

#define LARGEST_HOST_NAME 256
#define MOST_ADDRESSES 32
/* For a connection on a local network, which takes less than a millisecond. */
#define CONNECT_MS 3000

typedef struct {
    struct in_addr at[MOST_ADDRESSES];
    int count;
} address_list;

static int is_loopback(struct in_addr address)
{
    return ntohl(address.s_addr) >> 24 == IN_LOOPBACKNET;
}

static void add_address(address_list *list, struct in_addr address, int with_loopback)
{
    if (is_loopback(address) && !with_loopback)
        return;
    for (int i = 0; i < list->count; i++)
        if (list->at[i].s_addr == address.s_addr)
            return;
    if (list->count < MOST_ADDRESSES)
        list->at[list->count++] = address;
}

static struct in_addr address_in(const struct sockaddr *any)
{
    struct sockaddr_in of_internet;
    memcpy(&of_internet, any, sizeof of_internet);
    return of_internet.sin_addr;
}

static void add_addresses_of_name(address_list *list, const char *name, int with_loopback)
{
    struct addrinfo wanted = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM}, *known = NULL;
    if (getaddrinfo(name, NULL, &wanted, &known) != 0)
        return; /* A name that is not known here is no fault: there are other addresses. */
    for (const struct addrinfo *one = known; one; one = one->ai_next)
        add_address(list, address_in(one->ai_addr), with_loopback);
    freeaddrinfo(known);
}

/* The addresses of this node's interfaces that are up, loopback last. */
static void add_own_addresses(address_list *list, int with_loopback)
{
    struct ifaddrs *interfaces = NULL;
    if (getifaddrs(&interfaces) != 0)
        return;
    for (int loopback = 0; loopback <= (with_loopback != 0); loopback++)
        for (const struct ifaddrs *one = interfaces; one; one = one->ifa_next)
            if (one->ifa_addr && one->ifa_addr->sa_family == AF_INET &&
                (one->ifa_flags & IFF_UP) &&
                is_loopback(address_in(one->ifa_addr)) == loopback)
                add_address(list, address_in(one->ifa_addr), with_loopback);
    freeifaddrs(interfaces);
}

/* Have a socket's calls give up after some time. Returns 0, or -1 with errno. */
static int limit_waiting(int descriptor, long microseconds)
{
    struct timeval limit = {microseconds / 1000000, microseconds % 1000000};
    if (setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) != 0)
        return -1;
    return setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

/* A socket bound to any free port of an address. Returns it and the port, or -1. */
static int bound_socket(int type, struct in_addr own, in_port_t *port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = own};
    socklen_t length = sizeof at;
    int descriptor = socket(AF_INET, type, 0);
    if (descriptor < 0)
        return -1;
    if (bind(descriptor, (struct sockaddr *)&at, sizeof at) != 0 ||
        getsockname(descriptor, (struct sockaddr *)&at, &length) != 0) {
        int reason = errno;
        close(descriptor);
        errno = reason;
        return -1;
    }
    *port = at.sin_port;
    return descriptor;
}

static int set_blocking(int descriptor, int blocking)
{
    int flags = fcntl(descriptor, F_GETFL);
    if (flags < 0)
        return -1;
    return fcntl(descriptor, F_SETFL, blocking ? flags & ~O_NONBLOCK : flags | O_NONBLOCK);
}

static int ready(int descriptor, short events)
{
    struct pollfd waiting = {descriptor, events, 0};
    int count;
    do
        count = poll(&waiting, 1, CONNECT_MS);
    while (count < 0 && errno == EINTR);
    if (count == 0)
        errno = ETIMEDOUT;
    return count == 1;
}

/* Connect within a time. Returns a blocking socket, or -1 with errno. */
static int connect_within_time(struct in_addr to, in_port_t port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = to, .sin_port = port};
    int descriptor = socket(AF_INET, SOCK_STREAM, 0), reason = 0;
    socklen_t length = sizeof reason;
    if (descriptor < 0)
        return -1;
    if (set_blocking(descriptor, 0) == 0) {
        int pending = connect(descriptor, (struct sockaddr *)&at, sizeof at) != 0;
        if (!pending ||
            (errno == EINPROGRESS && ready(descriptor, POLLOUT) &&
             getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &reason, &length) == 0)) {
            if (reason == 0 && set_blocking(descriptor, 1) == 0)
                return descriptor;
            errno = reason ? reason : errno;
        }
    }
    reason = errno;
    close(descriptor);
    errno = reason;
    return -1;
}

/* Accept within a time. Returns a blocking socket, or -1. */
static int accept_within_time(int listening)
{
    return ready(listening, POLLIN) ? accept(listening, NULL, NULL) : -1;
}

/* Whether the other end is the other rank: it sends the word that MPI has told both. */
static int is_other_rank(int stream, uint64_t word, int sends_first)
{
    uint64_t heard = 0;
    for (int turn = 0; turn < 2; turn++) {
        if ((turn == 0) == sends_first) {
            if (send(stream, &word, sizeof word, MSG_NOSIGNAL) != (ssize_t)sizeof word)
                return 0;
        } else if (!ready(stream, POLLIN) ||
                   recv(stream, &heard, sizeof heard, MSG_WAITALL) != (ssize_t)sizeof heard) {
            return 0;
        }
    }
    return heard == word;
}

static int prepare_stream(connection *found)
{
    struct sockaddr_in own, other;
    socklen_t own_length = sizeof own, other_length = sizeof other;
    int on = 1;
    if (getsockname(found->stream, (struct sockaddr *)&own, &own_length) != 0 ||
        getpeername(found->stream, (struct sockaddr *)&other, &other_length) != 0 ||
        /* A message is sent at once, not held back until the one before is acknowledged. */
        setsockopt(found->stream, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0 ||
        limit_waiting(found->stream, LONGEST_SILENCE_S * 1000000L) != 0)
        return -1;
    found->own = own.sin_addr;
    found->other = other.sin_addr;
    return 0;
}

/* Both ranks try one address. Returns whether it connects them. */
static int try_address(int rank, struct in_addr to, in_port_t port, int listening, uint64_t word,
                       connection *found)
{
    int mine = 1, both;
    found->stream = -1;
    if (rank == 0)
        mine = (found->stream = connect_within_time(to, port)) >= 0;
    /* Rank 1 accepts only where there is something to accept, so that it does not wait in vain. */
    MPI_Bcast(&mine, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (!mine)
        return 0;
    if (rank == 1)
        found->stream = accept_within_time(listening);
    mine = found->stream >= 0 && is_other_rank(found->stream, word, rank == 0) &&
           prepare_stream(found) == 0;
    MPI_Allreduce(&mine, &both, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (!both && found->stream >= 0)
        close(found->stream);
    return both;
}

int connect_ranks(int same_host, connection *found, complaint *about)
{
    struct { /* Of rank 1. */
        char name[LARGEST_HOST_NAME];
        address_list own;
        in_port_t port;
        int fails;
        uint64_t word;
    } server;
    const struct in_addr any = {htonl(INADDR_ANY)};
    struct timespec now;
    int rank, listening = -1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    memset(&server, 0, sizeof server);
    if (rank == 1) {
        listening = bound_socket(SOCK_STREAM, any, &server.port);
        server.fails = listening < 0 || listen(listening, MOST_ADDRESSES) != 0 ? errno : 0;
        if (gethostname(server.name, sizeof server.name - 1) != 0)
            server.name[0] = '\0';
        add_own_addresses(&server.own, same_host);
        clock_gettime(CLOCK_REALTIME, &now);
        server.word = (uint64_t)now.tv_nsec * 0x9e3779b97f4a7c15U ^ (uint64_t)getpid() << 32 ^
                      (uint64_t)now.tv_sec;
    }
    MPI_Bcast(&server, (int)sizeof server, MPI_BYTE, 1, MPI_COMM_WORLD);
    if (server.fails) {
        if (listening >= 0)
            close(listening);
        return complain(about, "rank 1 cannot listen for a connection: %s",
                        strerror(server.fails));
    }
    address_list tried = {.count = 0};
    if (rank == 0) {
        add_addresses_of_name(&tried, server.name, same_host);
        for (int i = 0; i < server.own.count; i++)
            add_address(&tried, server.own.at[i], same_host);
    }
    MPI_Bcast(&tried, (int)sizeof tried, MPI_BYTE, 0, MPI_COMM_WORLD);
    int connected = 0;
    for (int i = 0; i < tried.count && !connected; i++)
        connected = try_address(rank, tried.at[i], server.port, listening, server.word, found);
    if (listening >= 0)
        close(listening);
    if (connected)
        return 0;
    return complain(about, "rank 0 cannot reach rank 1 at any of the %d known addresses of %s",
                    tried.count, server.name);
}

int open_datagrams(const connection *over, complaint *about)
{
    int rank;
    in_port_t own = 0, ports[2];
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int descriptor = bound_socket(SOCK_DGRAM, over->own, &own);
    int reason = descriptor < 0 ? errno : 0, any;
    MPI_Allgather(&own, (int)sizeof own, MPI_BYTE, ports, (int)sizeof own, MPI_BYTE,
                  MPI_COMM_WORLD);
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_addr = over->other, .sin_port = ports[1 - rank]};
    if (!reason && (connect(descriptor, (struct sockaddr *)&to, sizeof to) != 0 ||
                    limit_waiting(descriptor, (long)(LOST_AFTER_S * 1e6)) != 0))
        reason = errno;
    MPI_Allreduce(&reason, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (any == 0)
        return descriptor;
    if (descriptor >= 0)
        close(descriptor);
    return complain(about, "no socket for datagrams: %s", strerror(any));
}
