#include "halo_links.h"

#include <limits.h>
#include <stdlib.h>

#include "../common/buffers.h"
#include "../common/clock.h"

enum { ALL_LINKS = (1 << DIMENSIONS) - 1 };

static int is_divided(const geometry *g, int dimension)
{
    return g->grid[dimension] > 1;
}

/* Whether a dimension has a border in memory; see field.h. */
static int has_border(const geometry *g, int dimension)
{
    return dimension < 2 || is_divided(g, dimension);
}

static region whole_region(const geometry *g, unsigned links)
{
    region r = {.links = links};
    for (int d = 0; d < DIMENSIONS; d++) {
        r.from[d] = 1;
        r.extent[d] = g->own[d];
    }
    return r;
}

/* One layer of a region. */
static region layer(region r, int dimension, int at)
{
    r.from[dimension] = at;
    r.extent[dimension] = 1;
    return r;
}

static long long numbers_of(const region *r)
{
    long long numbers = MATRIX;
    for (int d = 0; d < DIMENSIONS; d++)
        numbers *= r->extent[d];
    int links = 0;
    for (int mu = 0; mu < DIMENSIONS; mu++)
        links += (int)(r->links >> mu & 1u);
    return numbers * links;
}

/* The regions that go back from the first layer: links in other directions, and of the border that
 * is behind in another dimension those in that dimension. */
static int regions_behind(const geometry *g, int dimension, region *found, int *behind)
{
    int count = 0;
    found[count] = whole_region(g, ALL_LINKS & ~(1u << dimension));
    behind[count++] = -1;
    for (int other = 0; other < DIMENSIONS; other++)
        if (other != dimension && has_border(g, other)) {
            found[count] = layer(whole_region(g, 1u << other), other, 0);
            behind[count++] = other;
        }
    return count;
}

static void add_own_border(halo_links *h, int stage, region r, int dimension, int from, int to)
{
    h->border[stage][h->borders[stage]++] =
        (own_border){layer(r, dimension, from), layer(r, dimension, to)};
}

static void list_messages(halo_links *h)
{
    const geometry *g = h->field->geometry;
    int divided = 0;
    for (int d = 0; d < DIMENSIONS; d++)
        divided += is_divided(g, d);
    /* With one divided dimension no border of another rank is passed on to a third. */
    h->phases = divided > 1 ? 2 : divided;
    for (int ahead = 1; ahead >= 0; ahead--)
        for (int d = 0; d < DIMENSIONS; d++) {
            if (!has_border(g, d))
                continue;
            const int own = g->own[d];
            region parts[MOST_REGIONS];
            int behind[MOST_REGIONS], count = 1;
            if (ahead) {
                parts[0] = whole_region(g, ALL_LINKS);
                behind[0] = -1;
            } else {
                count = regions_behind(g, d, parts, behind);
            }
            const int from = ahead ? own : 1, to = ahead ? 0 : own + 1;
            if (!is_divided(g, d)) {
                for (int i = 0; i < count; i++)
                    add_own_border(h, behind[i] >= 0 && is_divided(g, behind[i]), parts[i], d,
                                   from, to);
                continue;
            }
            message *m = &h->message[h->messages++];
            m->to = neighbour_of(g, d, ahead ? 1 : -1);
            m->from = neighbour_of(g, d, ahead ? -1 : 1);
            m->phase = ahead || divided == 1 ? 0 : 1;
            m->regions = count;
            for (int i = 0; i < count; i++) {
                m->sent[i] = layer(parts[i], d, from);
                m->received[i] = layer(parts[i], d, to);
            }
        }
}

int lay_out_halo(halo_links *h, field *f, const kernels *k, const exchange_method *method,
                 complaint *about)
{
    *h = (halo_links){.field = f, .kernels = k, .method = method,
                      .number = k->number_bytes == sizeof(double) ? MPI_DOUBLE : MPI_FLOAT};
    list_messages(h);
    for (int phase = 0; phase < PHASES; phase++) {
        long long total = 0;
        int count = 0;
        for (int i = 0; i < MOST_MESSAGES; i++)
            h->receive[phase][i] = h->send[phase][i] = MPI_REQUEST_NULL;
        for (message *m = h->message; m < h->message + h->messages; m++) {
            if (m->phase != phase)
                continue;
            long long numbers = 0;
            for (int i = 0; i < m->regions; i++)
                numbers += numbers_of(&m->sent[i]);
            if (total + numbers > INT_MAX)
                return complain(about, "a rank's border has more than %d numbers", INT_MAX);
            m->place = count;
            h->places[phase][count] = (int)total;
            h->counts[phase][count++] = m->numbers = (int)numbers;
            total += numbers;
        }
        h->in_phase[phase] = count;
        if (!total)
            continue;
        h->sent_bytes += (unsigned long long)total * k->number_bytes;
        h->out[phase] = page_aligned((size_t)total * k->number_bytes);
        h->in[phase] = page_aligned((size_t)total * k->number_bytes);
        if (!h->out[phase] || !h->in[phase])
            return complain(about, "no memory for borders of %lld numbers", total);
        for (message *m = h->message; m < h->message + h->messages; m++)
            if (m->phase == phase) {
                const size_t place = (size_t)h->places[phase][m->place] * k->number_bytes;
                m->out = (char *)h->out[phase] + place;
                m->in = (char *)h->in[phase] + place;
            }
    }
    return 0;
}

void open_halo(halo_links *h)
{
    if (h->method->open)
        h->method->open(h);
}

void close_halo(halo_links *h)
{
    if (h->method->close)
        h->method->close(h);
    for (int phase = 0; phase < PHASES; phase++) {
        free(h->out[phase]);
        free(h->in[phase]);
    }
}

static void copy_own_borders(halo_links *h, int stage)
{
    for (int i = 0; i < h->borders[stage]; i++)
        h->kernels->copy(h->field, &h->border[stage][i].from, &h->border[stage][i].to);
}

static void start_phase(halo_links *h, int phase)
{
    for (message *m = h->message; m < h->message + h->messages; m++) {
        char *out = m->out;
        for (int i = 0; m->phase == phase && i < m->regions; i++) {
            h->kernels->pack(h->field, &m->sent[i], out);
            out += (size_t)numbers_of(&m->sent[i]) * h->kernels->number_bytes;
        }
    }
    const double began = seconds_now();
    h->method->start(h, phase);
    h->waited_s += seconds_now() - began;
}

static void finish_phase(halo_links *h, int phase)
{
    const double began = seconds_now();
    h->method->finish(h, phase);
    h->waited_s += seconds_now() - began;
    for (message *m = h->message; m < h->message + h->messages; m++) {
        const char *in = m->in;
        for (int i = 0; m->phase == phase && i < m->regions; i++) {
            h->kernels->unpack(h->field, &m->received[i], in);
            in += (size_t)numbers_of(&m->received[i]) * h->kernels->number_bytes;
        }
    }
}

void move_links(halo_links *h, double step)
{
    h->kernels->move(h->field, step, h->border[0], h->borders[0]);
}

void begin_exchange(halo_links *h)
{
    if (h->phases)
        start_phase(h, 0);
}

void go_on(halo_links *h, int phase)
{
    if (phase >= h->phases)
        return;
    finish_phase(h, phase);
    if (phase == 0)
        copy_own_borders(h, 1);
    if (phase + 1 < h->phases)
        start_phase(h, phase + 1);
}

static void exchange(halo_links *h)
{
    begin_exchange(h);
    for (int phase = 0; phase < h->phases; phase++)
        go_on(h, phase);
}

void exchange_links(halo_links *h)
{
    copy_own_borders(h, 0);
    exchange(h);
}

/* The number that a place of the whole lattice has in the verification; single precision holds it
 * exactly. */
static double number_at(const geometry *g, const int *site, int direction, int element)
{
    unsigned long long place = 0;
    for (int d = 0; d < DIMENSIONS; d++) {
        const int whole = g->whole[d];
        const int at = (g->place[d] * g->own[d] + site[d] - 1 + whole) % whole;
        place = place * 0x100000001b3ULL + (unsigned long long)at + 1;
    }
    place = (place * DIMENSIONS + (unsigned long long)direction) * MATRIX +
            (unsigned long long)element;
    place *= 0x9E3779B97F4A7C15ULL;
    return (double)(place >> 44);
}

static long long compare_region(const halo_links *h, const region *r, int from, complaint *about)
{
    const geometry *g = h->field->geometry;
    int at[DIMENSIONS];
    for (at[3] = 0; at[3] < r->extent[3]; at[3]++)
        for (at[2] = 0; at[2] < r->extent[2]; at[2]++)
            for (at[1] = 0; at[1] < r->extent[1]; at[1]++)
                for (at[0] = 0; at[0] < r->extent[0]; at[0]++)
                    for (int mu = 0; mu < DIMENSIONS; mu++) {
                        int site[DIMENSIONS];
                        double link[MATRIX];
                        if (!(r->links >> mu & 1u))
                            continue;
                        for (int d = 0; d < DIMENSIONS; d++)
                            site[d] = r->from[d] + at[d];
                        get_link(h->field, site, mu, link);
                        for (int c = 0; c < MATRIX; c++)
                            if (link[c] != number_at(g, site, mu, c))
                                return complain(about,
                                                "rank %d has a wrong number in its border, from "
                                                "rank %d, at (%d, %d, %d, %d), direction %d: %g, "
                                                "not %g",
                                                g->rank, from, site[0], site[1], site[2], site[3],
                                                mu, link[c], number_at(g, site, mu, c));
                    }
    return numbers_of(r);
}

static long long compare_borders(const halo_links *h, complaint *about)
{
    long long numbers = 0;
    for (int stage = 0; stage < PHASES; stage++)
        for (int i = 0; i < h->borders[stage]; i++)
            if (compare_region(h, &h->border[stage][i].to, h->field->geometry->rank, about) < 0)
                return -1;
    for (const message *m = h->message; m < h->message + h->messages; m++)
        for (int i = 0; i < m->regions; i++) {
            const long long compared = compare_region(h, &m->received[i], m->from, about);
            if (compared < 0)
                return -1;
            numbers += compared;
        }
    return numbers;
}

static void set_momenta(field *f, double number)
{
    const double traceless[MOMENTUM] = {number, number, -2 * number, number, number, number,
                                        number, number, number};
    int site[DIMENSIONS] = {1, 1, 1, 1};
    do
        for (int mu = 0; mu < DIMENSIONS; mu++)
            set_momentum(f, site, mu, traceless);
    while (next_site(f->geometry, site));
}

/* Move links, whatever they are, and compare the borders that moved with them with these links:
 * copied again, nothing changes. */
static int verify_move(halo_links *h, complaint *about)
{
    field *f = h->field;
    save_links(f);
    set_momenta(f, 1.0);
    move_links(h, 0.1);
    set_momenta(f, 0.0);
    if (links_are_saved(f))
        return complain(about, "rank %d has links that do not move", f->geometry->rank);
    save_links(f);
    copy_own_borders(h, 0);
    if (!links_are_saved(f))
        return complain(about, "rank %d has a border that did not move with its links",
                        f->geometry->rank);
    return 0;
}

long long verify_halo(halo_links *h, complaint *about)
{
    const geometry *g = h->field->geometry;
    long long numbers = 0;
    for (int after_move = 0; after_move <= 1; after_move++) {
        int site[DIMENSIONS] = {1, 1, 1, 1};
        forget_links(h->field);
        do
            for (int mu = 0; mu < DIMENSIONS; mu++) {
                double link[MATRIX];
                for (int c = 0; c < MATRIX; c++)
                    link[c] = number_at(g, site, mu, c);
                set_link(h->field, site, mu, link);
            }
        while (next_site(g, site));
        if (after_move) {
            move_links(h, 0.0); /* By exactly nothing, so that only the borders change. */
            exchange(h);
        } else {
            exchange_links(h);
        }
        const long long compared = compare_borders(h, about);
        if (compared < 0)
            return -1;
        numbers = compared;
    }
    if (verify_move(h, about))
        return -1;
    return numbers * (long long)h->kernels->number_bytes;
}
