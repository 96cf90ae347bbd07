/* The ways in which the faces of a lattice are exchanged, and what has to be made before that. */
#ifndef WYEAST_BORDER_EXCHANGE_H
#define WYEAST_BORDER_EXCHANGE_H

#include "lattice.h"

typedef struct {
    lattice *lattice;
    MPI_Request requests[2 * MOST_FACES];
    MPI_Win window;
    MPI_Comm made;                 /* By the run before, as are the datatypes. */
    MPI_Datatype types[MOST_FACES]; /* Of the faces that are sent. */
} border_exchange;

typedef struct {
    const char *name;
    void (*run)(void *exchange); /* NULL where this MPI has no such calls. */
    void (*open)(border_exchange *e);
    void (*close)(border_exchange *e);
    /* Of what is made and no exchange: say what is wrong with it, and return -1, or return 0. */
    int (*verify)(const border_exchange *e, complaint *about);
    int of_extent; /* What is made depends on the extent. */
} exchange_method;

extern const char *const exchange_names[];

/* Why this MPI cannot do a method, or NULL where it can. */
const char *exchange_lacks(const exchange_method *method);

const exchange_method *find_exchange(const char *name);

#endif
