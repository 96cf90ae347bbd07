#include "field.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../common/buffers.h"

static size_t numbers_of_links(const field *f)
{
    /* A neighbour's vector may reach past the last row. */
    return f->planes * DIMENSIONS * MATRIX * f->length + 2 * f->length;
}

static size_t numbers_of_momenta(const field *f)
{
    return f->planes * DIMENSIONS * MOMENTUM * f->length;
}

static void *numbers(const field *f, size_t count)
{
    if (count > SIZE_MAX / f->number_bytes)
        return NULL;
    void *found = on_huge_pages(count * f->number_bytes);
    if (found)
        memset(found, 0, count * f->number_bytes);
    return found;
}

static void set_number(void *row, size_t bytes, size_t at, double value)
{
    if (bytes == sizeof(double))
        ((double *)row)[at] = value;
    else
        ((float *)row)[at] = (float)value;
}

static double get_number(const void *row, size_t bytes, size_t at)
{
    return bytes == sizeof(double) ? ((const double *)row)[at] : (double)((const float *)row)[at];
}

/* Planes of their own first; then borders, which exist where another rank has the neighbours. */
static int number_planes(field *f)
{
    const geometry *g = f->geometry;
    const int nz = g->own[2], nt = g->own[3];
    f->plane = calloc((size_t)(nz + 2) * (size_t)(nt + 2), sizeof *f->plane);
    if (!f->plane)
        return -1;
    f->planes = (size_t)nz * (size_t)nt;
    for (int t = 0; t <= nt + 1; t++)
        for (int z = 0; z <= nz + 1; z++) {
            const int at_z = g->grid[2] > 1 ? z : (z - 1 + nz) % nz + 1;
            const int at_t = g->grid[3] > 1 ? t : (t - 1 + nt) % nt + 1;
            const int is_own = at_z >= 1 && at_z <= nz && at_t >= 1 && at_t <= nt;
            size_t *plane = &f->plane[t * (nz + 2) + z];
            if (is_own)
                *plane = (size_t)((at_t - 1) * nz + at_z - 1);
            else if (at_z == z && at_t == t)
                *plane = f->planes++;
        }
    for (int t = 0; t <= nt + 1; t++)
        for (int z = 0; z <= nz + 1; z++) {
            const int at_z = g->grid[2] > 1 ? z : (z - 1 + nz) % nz + 1;
            const int at_t = g->grid[3] > 1 ? t : (t - 1 + nt) % nt + 1;
            f->plane[t * (nz + 2) + z] = f->plane[at_t * (nz + 2) + at_z];
        }
    return 0;
}

/* Whether a site's neighbours are other ranks'. */
static int touches_border(const geometry *g, const int *site)
{
    for (int d = 0; d < DIMENSIONS; d++)
        if (g->grid[d] > 1 && (site[d] == 1 || site[d] == g->own[d]))
            return 1;
    return 0;
}

static int is_inner(const field *f, const chunk *c)
{
    const geometry *g = f->geometry;
    for (size_t lane = 0; lane < f->lanes; lane++) {
        const size_t at = c->at + lane - f->origin;
        const int site[DIMENSIONS] = {(int)(at % f->stride), (int)(at / f->stride), c->z, c->t};
        const int is_own = site[0] >= 1 && site[0] <= g->own[0] && site[1] <= g->own[1];
        if (is_own && touches_border(g, site))
            return 0;
    }
    return 1;
}

static int list_chunks(field *f)
{
    const geometry *g = f->geometry;
    const size_t first = f->origin + f->stride + 1;
    const size_t span = f->stride * (size_t)(g->own[1] - 1) + (size_t)g->own[0];
    const size_t of_plane = (span + f->lanes - 1) / f->lanes;
    const size_t most = of_plane * (size_t)g->own[2] * (size_t)g->own[3];
    f->chunks = calloc(most, sizeof *f->chunks);
    if (!f->chunks)
        return -1;
    for (int inner = 1; inner >= 0; inner--)
        for (int t = 1; t <= g->own[3]; t++)
            for (int z = 1; z <= g->own[2]; z++)
                for (size_t i = 0; i < of_plane; i++) {
                    const chunk c = {z, t, first + i * f->lanes};
                    if (is_inner(f, &c) != inner)
                        continue;
                    f->chunks[f->all_chunks++] = c;
                    f->inner_chunks += (size_t)inner;
                }
    return 0;
}

int make_field(field *f, const geometry *g, size_t number_bytes, size_t lanes)
{
    *f = (field){.geometry = g, .number_bytes = number_bytes, .lanes = lanes};
    f->stride = (size_t)g->own[0] + 2;
    /* The first own site begins a vector. */
    f->origin = (lanes - (f->stride + 1) % lanes) % lanes;
    f->length = f->origin + f->stride * ((size_t)g->own[1] + 2) + lanes;
    f->length = (f->length + lanes - 1) / lanes * lanes;
    if (number_planes(f) || list_chunks(f))
        return -1;
    f->links = numbers(f, numbers_of_links(f));
    f->saved = numbers(f, numbers_of_links(f));
    f->momenta = numbers(f, numbers_of_momenta(f));
    f->mask = numbers(f, f->length);
    if (!f->links || !f->saved || !f->momenta || !f->mask)
        return -1;
    for (int y = 1; y <= g->own[1]; y++)
        for (int x = 1; x <= g->own[0]; x++)
            set_number(f->mask, number_bytes, f->origin + (size_t)y * f->stride + (size_t)x, 1.0);
    return 0;
}

void free_field(field *f)
{
    free(f->plane);
    free(f->chunks);
    free(f->links);
    free(f->saved);
    free(f->momenta);
    free(f->mask);
}

static size_t link_at(const field *f, const int *site, int direction)
{
    return row_of(f, site[2], site[3], direction) + f->origin +
           (size_t)site[1] * f->stride + (size_t)site[0];
}

void get_link(const field *f, const int *site, int direction, double *matrix)
{
    const size_t at = link_at(f, site, direction);
    for (size_t c = 0; c < MATRIX; c++)
        matrix[c] = get_number(f->links, f->number_bytes, at + c * f->length);
}

void set_link(field *f, const int *site, int direction, const double *matrix)
{
    const size_t at = link_at(f, site, direction);
    for (size_t c = 0; c < MATRIX; c++)
        set_number(f->links, f->number_bytes, at + c * f->length, matrix[c]);
}

static size_t momentum_at(const field *f, const int *site, int direction)
{
    return row_of(f, site[2], site[3], direction) / MATRIX * MOMENTUM + f->origin +
           (size_t)site[1] * f->stride + (size_t)site[0];
}

void get_momentum(const field *f, const int *site, int direction, double *momentum)
{
    const size_t at = momentum_at(f, site, direction);
    for (size_t c = 0; c < MOMENTUM; c++)
        momentum[c] = get_number(f->momenta, f->number_bytes, at + c * f->length);
}

void set_momentum(field *f, const int *site, int direction, const double *momentum)
{
    const size_t at = momentum_at(f, site, direction);
    for (size_t c = 0; c < MOMENTUM; c++)
        set_number(f->momenta, f->number_bytes, at + c * f->length, momentum[c]);
}

int next_site(const geometry *g, int *site)
{
    for (int d = 0; d < DIMENSIONS; d++) {
        if (++site[d] <= g->own[d])
            return 1;
        site[d] = 1;
    }
    return 0;
}

void forget_links(field *f)
{
    memset(f->links, 0, numbers_of_links(f) * f->number_bytes);
}

void save_links(field *f)
{
    memcpy(f->saved, f->links, numbers_of_links(f) * f->number_bytes);
}

int links_are_saved(const field *f)
{
    return memcmp(f->saved, f->links, numbers_of_links(f) * f->number_bytes) == 0;
}

void restore_links(field *f)
{
    memcpy(f->links, f->saved, numbers_of_links(f) * f->number_bytes);
}

void negate_momenta(field *f)
{
    const size_t count = numbers_of_momenta(f);
    for (size_t i = 0; i < count; i++)
        set_number(f->momenta, f->number_bytes, i, -get_number(f->momenta, f->number_bytes, i));
}
