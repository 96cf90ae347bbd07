/* The ways in which the faces of a lattice are exchanged. */
#ifndef WYEAST_BORDER_EXCHANGE_H
#define WYEAST_BORDER_EXCHANGE_H

#include "lattice.h"

typedef struct {
    lattice *lattice;
    MPI_Request requests[2 * MOST_FACES];
    MPI_Win window;
} border_exchange;

typedef struct {
    const char *name;
    void (*run)(void *exchange); /* NULL where this MPI has no such calls. */
    void (*open)(border_exchange *e);
    void (*close)(border_exchange *e);
} exchange_method;

extern const char *const exchange_names[];

const exchange_method *find_exchange(const char *name);

#endif
