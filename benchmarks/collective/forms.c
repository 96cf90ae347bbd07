#include "forms.h"

#include <string.h>

#include "../common/computation.h"
#include "../common/standard.h"

static const form forms[] = {
    {.name = "blocking", .method = ""},
    {.name = "in-place", .method = "in-place", .in_place = 1},
    {.name = "non-blocking", .method = "non-blocking", .has_request = 1},
    {.name = "persistent", .method = "persistent", .has_request = 1, .is_persistent = 1},
};
#define FORMS (sizeof forms / sizeof forms[0])

const char *const form_names[] = {"blocking", "in-place", "non-blocking", "persistent", NULL};

const form *find_form(const char *name)
{
    for (size_t i = 0; i < FORMS; i++)
        if (strcmp(forms[i].name, name) == 0)
            return &forms[i];
    return NULL;
}

int check_form(const form *how, const collective *what, complaint *about)
{
    if (how->in_place && what->in_place == NOWHERE)
        return complain(about, "--form in-place: %s has no two buffers to make one of", what->name);
    if (how->has_request && strcmp(what->name, "dissemination-barrier") == 0)
        return complain(about, "--form %s: %s is no call of MPI, and blocks", how->name, what->name);
    return 0;
}

const char *lacks_form(const form *how)
{
#ifndef MPI_IN_PLACE
    if (how->in_place)
        return "in-place: this MPI has no MPI_IN_PLACE";
#endif
#if !HAS_MPI3
    if (how->has_request && !how->is_persistent)
        return "non-blocking: this MPI has no such collective calls";
#endif
#if !HAS_MPI4
    if (how->is_persistent)
        return "persistent: this MPI has no such collective calls";
#endif
    (void)how;
    return NULL;
}

const char *lacks_operation(const collective *what)
{
    return what->run ? NULL : "this MPI has no such call";
}

void place_buffers(call *c, const form *how)
{
    c->given = c->send;
    c->taken = c->receive;
    c->in_place = how->in_place && (c->what->in_place == EVERYWHERE || c->rank == 0);
#ifdef MPI_IN_PLACE
    /* The root leaves its own block of the scattered data where it is. */
    if (c->in_place && c->what->root_sends)
        c->taken = MPI_IN_PLACE;
    else if (c->in_place)
        c->given = MPI_IN_PLACE;
#endif
}

static void run_started(void *context)
{
    call *c = context;
    c->what->start(c);
    MPI_Wait(&c->request, MPI_STATUS_IGNORE);
}

static void run_persistent(void *context)
{
    call *c = context;
    MPI_Start(&c->request);
    MPI_Wait(&c->request, MPI_STATUS_IGNORE);
}

void (*run_of(const form *how, const collective *what))(void *context)
{
    return how->is_persistent ? run_persistent : how->has_request ? run_started : what->run;
}

void run_computing(void *context)
{
    compute(((call *)context)->operations);
}

void run_overlapped(void *context)
{
    call *c = context;
    c->what->start(c);
    compute(c->operations);
    MPI_Wait(&c->request, MPI_STATUS_IGNORE);
}
