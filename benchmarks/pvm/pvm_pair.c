#include "pvm_pair.h"

#include <limits.h>
#include <pvm3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

/* What a message is: data, PVM's notice that the other task has ended, or why it has. */
#define TAG_DATA 1
#define TAG_ENDED 2
#define TAG_COMPLAINT 3
/* How long the sentence of a task that has ended may be on its way. */
#define COMPLAINT_WAIT_S 2

/* PVM's own words for a code of its. */
static const char *words_of(int code)
{
    static const char *const words[] = {
        [-PvmBadParam] = "bad parameter",
        [-PvmMismatch] = "count mismatch",
        [-PvmNoData] = "read past the end of the message",
        [-PvmNoHost] = "no such host",
        [-PvmNoFile] = "no such program",
        [-PvmDenied] = "permission denied",
        [-PvmNoMem] = "no memory",
        [-PvmBadMsg] = "the message cannot be decoded",
        [-PvmSysErr] = "PVM's daemon does not respond",
        [-PvmNoTask] = "no such task",
        [-PvmHostFail] = "the host has failed",
        [-PvmOutOfRes] = "out of resources",
    };
    const size_t known = sizeof words / sizeof words[0];
    return code < 0 && (size_t)-code < known && words[-code] ? words[-code] : "unknown error";
}

static int failed(const char *call, int code, complaint *about)
{
    return complain(about, "%s: %s (%d)", call, words_of(code), code);
}

/* Return another host's name than this task's, or NULL where there is none. */
static char *another_host(int here, int *hosts, complaint *about)
{
    struct pvmhostinfo *found = NULL;
    int architectures, code = pvm_config(hosts, &architectures, &found);
    if (code < 0) {
        failed("pvm_config", code, about);
        *hosts = 0;
        return NULL;
    }
    for (int i = 0; i < *hosts; i++)
        if (found[i].hi_tid != pvm_tidtohost(here))
            return found[i].hi_name;
    return NULL;
}

static int start_other(task_pair *pair, int here, char **argv, complaint *about)
{
    char *slash = strrchr(argv[0], '/'), *name = slash ? slash + 1 : argv[0];
    int hosts = 0;
    char *host = another_host(here, &hosts, about);
    if (hosts == 0)
        return -1;
    int tid = 0;
    int started = pvm_spawn(name, argv + 1, host ? PvmTaskHost : PvmTaskDefault, host, 1, &tid);
    if (started != 1)
        return complain(about, "the second %.40s could not be started on %.80s: %s", name,
                        host ? host : "this host", words_of(started < 0 ? started : tid));
    pair->other = tid;
    return 0;
}

int join_pair(task_pair *pair, message_route route, char **argv, complaint *about)
{
    /* Codes are checked; PVM need not report them as well. */
    pvm_setopt(PvmAutoErr, 0);
    int here = pvm_mytid();
    if (here < 0)
        return complain(about, "there is no PVM daemon to join (%s); start this program with: "
                        "pvm_ranks -n 2 %.80s", words_of(here), argv[0]);
    pair->route = route;
    /* PvmDontRoute also refuses links that the other task asks for. */
    int code = pvm_setopt(PvmRoute, route == ROUTE_DIRECT ? PvmRouteDirect : PvmDontRoute);
    if (code < 0)
        return failed("pvm_setopt", code, about);
    pair->other = pvm_parent();
    pair->number = pair->other < 0 ? 0 : 1;
    if (pair->number == 0 && start_other(pair, here, argv, about))
        return -1;
    /* Who waits for a message from a task that has ended would wait for ever. */
    code = pvm_notify(PvmTaskExit, TAG_ENDED, 1, &pair->other);
    return code < 0 ? failed("pvm_notify", code, about) : 0;
}

int send_message(const task_pair *pair, message_calls calls, const void *data, size_t bytes,
                 complaint *about)
{
    /* PVM reads the data only; its calls are older than `const`. */
    char *from = (char *)(size_t)data;
    int count = (int)bytes, code;
    if (calls == BY_PSEND) {
        code = pvm_psend(pair->other, TAG_DATA, from, count, PVM_BYTE);
        return code < 0 ? failed("pvm_psend", code, about) : 0;
    }
    code = pvm_initsend(calls == BY_SEND_IN_PLACE ? PvmDataInPlace : PvmDataRaw);
    if (code < 0)
        return failed("pvm_initsend", code, about);
    code = pvm_pkbyte(from, count, 1);
    if (code < 0)
        return failed("pvm_pkbyte", code, about);
    code = pvm_send(pair->other, TAG_DATA);
    return code < 0 ? failed("pvm_send", code, about) : 0;
}

/* Say why there is a message that is not the other task's data. */
static int other_has_ended(const task_pair *pair, complaint *about)
{
    struct timeval wait = {.tv_sec = COMPLAINT_WAIT_S};
    char text[sizeof about->text / 2] = "";
    if (pvm_trecv(pair->other, TAG_COMPLAINT, &wait) > 0 &&
        pvm_upkbyte(text, (int)sizeof text, 1) >= 0) {
        text[sizeof text - 1] = '\0';
        return complain(about, "the other task: %s", text);
    }
    return complain(about, "the other task ended too early");
}

int receive_message(const task_pair *pair, message_calls calls, void *data, size_t bytes,
                    complaint *about)
{
    int code, from = 0, tag = 0, length = 0;
    if (calls == BY_PSEND) {
        code = pvm_precv(-1, -1, data, (int)bytes, PVM_BYTE, &from, &tag, &length);
        if (code < 0)
            return failed("pvm_precv", code, about);
    } else {
        code = pvm_recv(-1, -1);
        if (code < 0)
            return failed("pvm_recv", code, about);
        code = pvm_bufinfo(code, &length, &tag, &from);
        if (code < 0)
            return failed("pvm_bufinfo", code, about);
    }
    if (tag == TAG_COMPLAINT && calls != BY_PSEND) {
        char text[sizeof about->text / 2] = "";
        pvm_upkbyte(text, (int)sizeof text, 1);
        text[sizeof text - 1] = '\0';
        return complain(about, "the other task: %s", text);
    }
    if (tag != TAG_DATA || from != pair->other)
        return other_has_ended(pair, about);
    if ((size_t)length != bytes)
        return complain(about, "a message of %d bytes came instead of one of %zu", length,
                        bytes);
    if (calls == BY_PSEND)
        return 0;
    code = pvm_upkbyte(data, (int)bytes, 1);
    return code < 0 ? failed("pvm_upkbyte", code, about) : 0;
}

int check_route(const task_pair *pair, complaint *about)
{
    /* The first is the daemon's socket, the others are those of direct routes. */
    int *sockets = NULL, count = pvm_getfds(&sockets);
    if (count < 0)
        return failed("pvm_getfds", count, about);
    if ((count > 1) == (pair->route == ROUTE_DIRECT))
        return 0;
    return complain(about, pair->route == ROUTE_DIRECT
                               ? "PVM has made no direct route between the tasks"
                               : "PVM has made a direct route instead of one through its daemons");
}

void leave_pair(const task_pair *pair, const char *sentence)
{
    char text[sizeof ((complaint *)0)->text / 2] = "";
    if (sentence && pair->number == 1 && pvm_initsend(PvmDataRaw) >= 0) {
        snprintf(text, sizeof text, "%.*s", (int)sizeof text - 1, sentence);
        if (pvm_pkbyte(text, (int)sizeof text, 1) >= 0)
            pvm_send(pair->other, TAG_COMPLAINT);
    }
    pvm_exit();
}
