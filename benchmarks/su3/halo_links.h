/* The border of a rank's links: what its neighbours have.
 *
 * A link's staples need neighbours on both sides and, one step ahead in one direction, those a step
 * back in another. So borders go in two phases: first every rank gives its last layer in each
 * dimension to the rank ahead, then its first layer, with the part of the border that has come with
 * the first phase, to the rank behind. Work that needs no border continues meanwhile. */
#ifndef WYEAST_HALO_LINKS_H
#define WYEAST_HALO_LINKS_H

#include <mpi.h>

#include "kernels.h"

enum { MOST_MESSAGES = 2 * DIMENSIONS, MOST_REGIONS = DIMENSIONS, PHASES = 2 };

typedef struct {
    int to, from; /* Ranks. */
    int phase, place; /* Which one of its phase. */
    int regions;
    region sent[MOST_REGIONS], received[MOST_REGIONS];
    int numbers;
    void *out, *in;
} message;

typedef struct halo_links halo_links;

typedef struct {
    const char *name;
    void (*open)(halo_links *h); /* NULL: nothing to prepare. */
    void (*start)(halo_links *h, int phase); /* NULL where this MPI has no such calls. */
    void (*finish)(halo_links *h, int phase);
    void (*close)(halo_links *h);
} exchange_method;

struct halo_links {
    field *field;
    const kernels *kernels;
    const exchange_method *method;
    MPI_Datatype number;
    int phases, messages, in_phase[PHASES];
    message message[MOST_MESSAGES];
    /* Copied before the first phase, and after it. */
    own_border border[PHASES][DIMENSIONS * DIMENSIONS];
    int borders[PHASES];
    MPI_Request receive[PHASES][MOST_MESSAGES], send[PHASES][MOST_MESSAGES];
    MPI_Comm comm[PHASES]; /* Of neighbourhood collectives. */
    void *out[PHASES], *in[PHASES]; /* All messages of a phase, one after the other. */
    int counts[PHASES][MOST_MESSAGES], places[PHASES][MOST_MESSAGES];
    unsigned long long sent_bytes; /* Of one exchange, to other ranks. */
    double waited_s;               /* In MPI's calls, of all exchanges so far. */
};

extern const char *const exchange_names[];

const exchange_method *find_exchange(const char *name);

/* Returns 0, or -1 with a sentence. Collective where it returns 0 on all ranks. */
int lay_out_halo(halo_links *h, field *f, const kernels *k, const exchange_method *method,
                 complaint *about);
void open_halo(halo_links *h);
void close_halo(halo_links *h);

/* U = exp(i step H) U, and the rank's own borders with it, plane by plane while they are in a
 * cache. */
void move_links(halo_links *h, double step);

/* The exchange after a move: begin, then go on once for each phase; the last one ends it. */
void begin_exchange(halo_links *h);
void go_on(halo_links *h, int phase);

/* The exchange where links have changed in another way, as a whole. */
void exchange_links(halo_links *h);

/* Fill the links with numbers that follow from their places, exchange, and compare all that has to
 * arrive; then move them, and compare the rank's own borders with the links that they are of.
 * Returns the bytes compared that were other ranks', or -1 with a sentence. */
long long verify_halo(halo_links *h, complaint *about);

#endif
