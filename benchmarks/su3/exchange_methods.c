#include <string.h>

#include "halo_links.h"

const char *const exchange_names[] = {"ssend-irecv", "isend-irecv", "persistent", "neighbourhood",
                                      NULL};

#define EACH_MESSAGE(h, in_phase, m)                                                               \
    for (message *m = (h)->message; m < (h)->message + (h)->messages; m++)                         \
        if (m->phase == (in_phase))

/* A message's tag. */
static int number_of(const halo_links *h, const message *m)
{
    return (int)(m - h->message);
}

static void post_receives(halo_links *h, int phase)
{
    EACH_MESSAGE (h, phase, m)
        MPI_Irecv(m->in, m->numbers, h->number, m->from, number_of(h, m), MPI_COMM_WORLD,
                  &h->receive[phase][m->place]);
}

static void wait_for_receives(halo_links *h, int phase)
{
    MPI_Waitall(h->in_phase[phase], h->receive[phase], MPI_STATUSES_IGNORE);
}

static void wait_for_both(halo_links *h, int phase)
{
    wait_for_receives(h, phase);
    MPI_Waitall(h->in_phase[phase], h->send[phase], MPI_STATUSES_IGNORE);
}

/* The thesis found MILC to send so (Kearns 2003, section 4.2.2). All ranks go through the
 * messages in one order, each receive is posted before the send waits, so none waits in a circle. */
static void start_ssend(halo_links *h, int phase)
{
    EACH_MESSAGE (h, phase, m) {
        MPI_Irecv(m->in, m->numbers, h->number, m->from, number_of(h, m), MPI_COMM_WORLD,
                  &h->receive[phase][m->place]);
        MPI_Ssend(m->out, m->numbers, h->number, m->to, number_of(h, m), MPI_COMM_WORLD);
    }
}

static void start_isend(halo_links *h, int phase)
{
    if (phase == 0)
        for (int later = 0; later < PHASES; later++)
            post_receives(h, later);
    EACH_MESSAGE (h, phase, m)
        MPI_Isend(m->out, m->numbers, h->number, m->to, number_of(h, m), MPI_COMM_WORLD,
                  &h->send[phase][m->place]);
}

static void open_persistent(halo_links *h)
{
    for (int phase = 0; phase < PHASES; phase++)
        EACH_MESSAGE (h, phase, m) {
            const int n = number_of(h, m);
            MPI_Recv_init(m->in, m->numbers, h->number, m->from, n, MPI_COMM_WORLD,
                          &h->receive[phase][m->place]);
            MPI_Send_init(m->out, m->numbers, h->number, m->to, n, MPI_COMM_WORLD,
                          &h->send[phase][m->place]);
        }
}

static void start_persistent(halo_links *h, int phase)
{
    EACH_MESSAGE (h, phase, m) {
        MPI_Start(&h->receive[phase][m->place]);
        MPI_Start(&h->send[phase][m->place]);
    }
}

static void close_persistent(halo_links *h)
{
    for (int phase = 0; phase < PHASES; phase++)
        EACH_MESSAGE (h, phase, m) {
            MPI_Request_free(&h->receive[phase][m->place]);
            MPI_Request_free(&h->send[phase][m->place]);
        }
}

#if MPI_VERSION >= 3
/* A graph for each phase: on a Cartesian one of two ranks in a dimension both neighbours are one,
 * and libraries differ in which message they take for which. */
static void open_neighbourhood(halo_links *h)
{
    for (int phase = 0; phase < h->phases; phase++) {
        int from[MOST_MESSAGES], to[MOST_MESSAGES], weight[MOST_MESSAGES], count = 0;
        EACH_MESSAGE (h, phase, m) {
            from[count] = m->from;
            to[count] = m->to;
            weight[count++] = m->numbers;
        }
        MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, count, from, weight, count, to, weight,
                                       MPI_INFO_NULL, 0, &h->comm[phase]);
    }
}

static void start_neighbourhood(halo_links *h, int phase)
{
    MPI_Ineighbor_alltoallv(h->out[phase], h->counts[phase], h->places[phase], h->number,
                            h->in[phase], h->counts[phase], h->places[phase], h->number,
                            h->comm[phase], &h->receive[phase][0]);
}

static void wait_for_neighbourhood(halo_links *h, int phase)
{
    MPI_Wait(&h->receive[phase][0], MPI_STATUS_IGNORE);
}

static void close_neighbourhood(halo_links *h)
{
    for (int phase = 0; phase < h->phases; phase++)
        MPI_Comm_free(&h->comm[phase]);
}
#else
#define open_neighbourhood NULL
#define start_neighbourhood NULL
#define wait_for_neighbourhood NULL
#define close_neighbourhood NULL
#endif

static const exchange_method methods[] = {
    {"ssend-irecv", NULL, start_ssend, wait_for_receives, NULL},
    {"isend-irecv", NULL, start_isend, wait_for_both, NULL},
    {"persistent", open_persistent, start_persistent, wait_for_both, close_persistent},
    {"neighbourhood", open_neighbourhood, start_neighbourhood, wait_for_neighbourhood,
     close_neighbourhood},
};

const exchange_method *find_exchange(const char *name)
{
    for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++)
        if (strcmp(methods[i].name, name) == 0)
            return &methods[i];
    return NULL;
}
