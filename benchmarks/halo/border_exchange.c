#include "border_exchange.h"

#include <string.h>

const char *const exchange_names[] = {"sendrecv", "isend-irecv", "persistent", "neighbourhood",
                                      "put", "create", "datatypes", NULL};

/* A face travels under the number of the side of its sender that it is, so that two faces between
 * the same two ranks, as on a periodic grid of two, are told apart. */
static void run_sendrecv(void *context)
{
    lattice *l = ((border_exchange *)context)->lattice;
    for (int face = 0; face < l->faces; face++) {
        const int from = face ^ 1;
        MPI_Sendrecv(l->values, 1, l->sent[face], l->neighbour[face], face, l->values, 1,
                     l->received[from], l->neighbour[from], face, l->comm, MPI_STATUS_IGNORE);
    }
}

static void run_isend_irecv(void *context)
{
    border_exchange *e = context;
    lattice *l = e->lattice;
    for (int face = 0; face < l->faces; face++)
        MPI_Irecv(l->values, 1, l->received[face], l->neighbour[face], face ^ 1, l->comm,
                  &e->requests[face]);
    for (int face = 0; face < l->faces; face++)
        MPI_Isend(l->values, 1, l->sent[face], l->neighbour[face], face, l->comm,
                  &e->requests[l->faces + face]);
    MPI_Waitall(2 * l->faces, e->requests, MPI_STATUSES_IGNORE);
}

static void open_persistent(border_exchange *e)
{
    lattice *l = e->lattice;
    for (int face = 0; face < l->faces; face++) {
        MPI_Recv_init(l->values, 1, l->received[face], l->neighbour[face], face ^ 1, l->comm,
                      &e->requests[face]);
        MPI_Send_init(l->values, 1, l->sent[face], l->neighbour[face], face, l->comm,
                      &e->requests[l->faces + face]);
    }
}

static void run_persistent(void *context)
{
    border_exchange *e = context;
    MPI_Startall(2 * e->lattice->faces, e->requests);
    MPI_Waitall(2 * e->lattice->faces, e->requests, MPI_STATUSES_IGNORE);
}

static void close_persistent(border_exchange *e)
{
    for (int i = 0; i < 2 * e->lattice->faces; i++)
        MPI_Request_free(&e->requests[i]);
}

#if MPI_VERSION >= 3
static void run_neighbourhood(void *context)
{
    /* The datatypes begin at the lattice's first point, so every displacement is 0. */
    static const int one[MOST_FACES] = {1, 1, 1, 1, 1, 1, 1, 1};
    static const MPI_Aint none[MOST_FACES];
    lattice *l = ((border_exchange *)context)->lattice;
    MPI_Neighbor_alltoallw(l->values, one, none, l->sent, l->values, one, none, l->received,
                           l->comm);
}
#else
#define run_neighbourhood NULL
#endif

#ifndef LAM_MPI /* Its MPI_Put ends the ranks where the datatype is a derived one. */
static void open_window(border_exchange *e)
{
    lattice *l = e->lattice;
    MPI_Win_create(l->values, (MPI_Aint)(l->points * sizeof(double)), 1, MPI_INFO_NULL, l->comm,
                   &e->window);
}

/* All ranks have the same extents, so a neighbour's border has this rank's datatype. */
static void run_put(void *context)
{
    border_exchange *e = context;
    lattice *l = e->lattice;
    MPI_Win_fence(0, e->window);
    for (int face = 0; face < l->faces; face++)
        if (l->neighbour[face] != MPI_PROC_NULL)
            MPI_Put(l->values, 1, l->sent[face], l->neighbour[face], 0, 1, l->received[face ^ 1],
                    e->window);
    MPI_Win_fence(0, e->window);
}

static void close_window(border_exchange *e)
{
    MPI_Win_free(&e->window);
}
#else
#define open_window NULL
#define run_put NULL
#define close_window NULL
#endif

/* What the run before has made is freed in the next one, so that there is something to look at. */
static void run_create(void *context)
{
    border_exchange *e = context;
    if (e->made != MPI_COMM_NULL)
        MPI_Comm_free(&e->made);
    make_grid(e->lattice, &e->made);
}

static void open_create(border_exchange *e)
{
    e->made = MPI_COMM_NULL;
}

static void close_create(border_exchange *e)
{
    MPI_Comm_free(&e->made);
}

static int verify_create(const border_exchange *e, complaint *about)
{
    const lattice *l = e->lattice;
    int rank, kind, place[MOST_DIMENSIONS] = {0};
    MPI_Topo_test(e->made, &kind);
    if (kind != MPI_CART)
        return complain(about, "MPI_Cart_create made a communicator without a grid");
    MPI_Comm_rank(e->made, &rank);
    MPI_Cart_coords(e->made, rank, l->dimensions, place);
    for (int d = 0; d < l->dimensions; d++)
        if (place[d] != l->place[d])
            return complain(about, "MPI_Cart_create put rank %d at %d of dimension %d, not at %d",
                            rank, place[d], d, l->place[d]);
    return 0;
}

static void run_datatypes(void *context)
{
    border_exchange *e = context;
    for (int face = 0; face < e->lattice->faces; face++) {
        if (e->types[face] != MPI_DATATYPE_NULL)
            MPI_Type_free(&e->types[face]);
        make_face(e->lattice, face, 0, &e->types[face]);
    }
}

static void open_datatypes(border_exchange *e)
{
    for (int face = 0; face < e->lattice->faces; face++)
        e->types[face] = MPI_DATATYPE_NULL;
}

static void close_datatypes(border_exchange *e)
{
    for (int face = 0; face < e->lattice->faces; face++)
        MPI_Type_free(&e->types[face]);
}

static int verify_datatypes(const border_exchange *e, complaint *about)
{
    for (int face = 0; face < e->lattice->faces; face++) {
        int bytes;
        MPI_Type_size(e->types[face], &bytes);
        if (bytes < 0 || (size_t)bytes != e->lattice->face_points[face] * sizeof(double))
            return complain(about, "the datatype of face %d has %d bytes, not %zu", face, bytes,
                            e->lattice->face_points[face] * sizeof(double));
    }
    return 0;
}

static const exchange_method methods[] = {
    {.name = "sendrecv", .run = run_sendrecv},
    {.name = "isend-irecv", .run = run_isend_irecv},
    {.name = "persistent", .run = run_persistent, .open = open_persistent,
     .close = close_persistent},
    {.name = "neighbourhood", .run = run_neighbourhood},
    {.name = "put", .run = run_put, .open = open_window, .close = close_window},
    {.name = "create", .run = run_create, .open = open_create, .close = close_create,
     .verify = verify_create},
    {.name = "datatypes", .run = run_datatypes, .open = open_datatypes,
     .close = close_datatypes, .verify = verify_datatypes, .of_extent = 1},
};

/* MVAPICH2 2.3.7 over its channel nemesis never ends the fence behind a put of 64 bytes or more of
 * a derived datatype; over its channel for InfiniBand the data take another way. */
static int put_never_ends(void)
{
#if MPI_VERSION >= 3
    char library[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    MPI_Get_library_version(library, &length);
    return strstr(library, "MVAPICH2") && strstr(library, "ch3:nemesis");
#else
    return 0;
#endif
}

const char *exchange_lacks(const exchange_method *method)
{
    if (!method->run)
        return "this MPI has no such calls";
    if (method->run == run_put && put_never_ends())
        return "MVAPICH2 over nemesis never ends one of derived datatypes";
    return NULL;
}

const exchange_method *find_exchange(const char *name)
{
    for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++)
        if (strcmp(methods[i].name, name) == 0)
            return &methods[i];
    return NULL;
}
