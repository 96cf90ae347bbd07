/* libwyeast_lam.so, which lam_ranks preloads: LAM 7.1.4 hands writev a part of length 0 whose address
 * nothing has set. The kernel refuses an address that no process can have (EFAULT), also of nothing, and
 * MPI_Init ends in `Bad address`: whenever such a number happens to be on the stack, as it is on some
 * processors after the loader has saved the vector registers there. And its sockets take what comes from
 * any network: where all ranks are on one node (LAM_RANKS_ON_ONE_NODE), loopback is enough. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

/* LAM has two parts: a header and a message. */
#define MOST_PARTS 8

typedef ssize_t transfer(int file, const struct iovec *parts, int count);

static ssize_t with_addresses(transfer *real, int file, const struct iovec *parts, int count)
{
    if (!real) {
        errno = ENOSYS;
        return -1;
    }
    if (count < 1 || count > MOST_PARTS)
        return real(file, parts, count);
    struct iovec own[MOST_PARTS];
    for (int i = 0; i < count; i++) {
        own[i] = parts[i];
        if (!own[i].iov_len)
            own[i].iov_base = NULL;
    }
    return real(file, own, count);
}

/* POSIX has dlsym return functions as it does objects; C has no cast for that. */
static transfer *next_named(const char *name)
{
    transfer *found;
    *(void **)&found = dlsym(RTLD_NEXT, name);
    return found;
}

ssize_t writev(int file, const struct iovec *parts, int count)
{
    static transfer *real;
    if (!real)
        real = next_named("writev");
    return with_addresses(real, file, parts, count);
}

ssize_t readv(int file, const struct iovec *parts, int count)
{
    static transfer *real;
    if (!real)
        real = next_named("readv");
    return with_addresses(real, file, parts, count);
}

/* glibc takes every kind of address by a union of pointers, where it has GNU's extensions. */
int bind(int file, __CONST_SOCKADDR_ARG given, socklen_t length)
{
    typedef int binding(int, const struct sockaddr *, socklen_t);
    const struct sockaddr *address = given.__sockaddr__;
    static binding *real;
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "bind");
    if (!real) {
        errno = ENOSYS;
        return -1;
    }
    struct sockaddr_in own;
    if (!getenv("LAM_RANKS_ON_ONE_NODE") || !address || length < sizeof own)
        return real(file, address, length);
    memcpy(&own, address, sizeof own);
    if (own.sin_family != AF_INET || own.sin_addr.s_addr != htonl(INADDR_ANY))
        return real(file, address, length);
    own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return real(file, (const struct sockaddr *)&own, sizeof own);
}
