#include "stream.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "../common/arguments.h"
#include "../common/leaving.h"
#include "partner.h"

static void fail(const partner *with, const char *what, const char *reason)
{
    complaint about;
    complain(&about, "tcp, %zu bytes: rank %d cannot %s: %s", with->bytes, with->rank, what, reason);
    leave_at_once("echo", about.text);
}

static const char *reason_of_errno(void)
{
    return errno == EAGAIN || errno == EWOULDBLOCK ? "the other rank was silent for too long"
                                                   : strerror(errno);
}

/* A stream takes what it has room for, so a long message goes in pieces. */
static void send_all(const partner *with, const unsigned char *buffer)
{
    for (size_t done = 0; done < with->bytes;) {
        ssize_t count = send(with->stream, buffer + done, with->bytes - done, MSG_NOSIGNAL);
        if (count >= 0)
            done += (size_t)count;
        else if (errno != EINTR)
            fail(with, "send", reason_of_errno());
    }
}

/* A stream has no messages: as many bytes as one has are taken, in the pieces that arrive. */
static void receive_all(const partner *with)
{
    for (size_t done = 0; done < with->bytes;) {
        ssize_t count = recv(with->stream, with->receive + done, with->bytes - done, 0);
        if (count > 0)
            done += (size_t)count;
        else if (count == 0)
            fail(with, "receive", "the other rank closed the connection");
        else if (errno != EINTR)
            fail(with, "receive", reason_of_errno());
    }
}

void echo_stream(void *context)
{
    const partner *with = context;
    if (with->rank == 0) {
        send_all(with, with->send);
        receive_all(with);
    } else {
        receive_all(with);
        send_all(with, with->receive);
    }
}
