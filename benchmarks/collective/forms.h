/* The forms in which a collective operation is called. */
#ifndef WYEAST_FORMS_H
#define WYEAST_FORMS_H

#include "../common/arguments.h"
#include "calls.h"

typedef struct {
    const char *name;
    const char *method; /* What the records call it. */
    int in_place, has_request, is_persistent;
} form;

/* The names of all forms, ended by NULL. */
extern const char *const form_names[];

/* The form of a name, or NULL. */
const form *find_form(const char *name);

/* Returns 0, or -1 with a sentence where MPI has no such form of the operation. */
int check_form(const form *how, const collective *what, complaint *about);

/* Why this MPI cannot do it, for leave_out: a sentence about the whole form, about the operation, or
 * NULL. */
const char *lacks_form(const form *how);
const char *lacks_operation(const collective *what);

/* Give the calls this rank's buffers, in a form. */
void place_buffers(call *c, const form *how);

/* What runs a call in a form. */
void (*run_of(const form *how, const collective *what))(void *context);

/* Run a non-blocking call with a computation between its start and its end; and the computation
 * alone. */
void run_overlapped(void *context);
void run_computing(void *context);

#endif
