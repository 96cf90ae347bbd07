#include "geometry.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

/* The sites that a rank shares with others, on one side of each divided dimension. */
static long long surface_of(const geometry *g, const int *grid)
{
    long long surface = 0, volume = 1;
    for (int d = 0; d < DIMENSIONS; d++)
        volume *= g->whole[d] / grid[d];
    for (int d = 0; d < DIMENSIONS; d++)
        if (grid[d] > 1)
            surface += volume / (g->whole[d] / grid[d]);
    return surface;
}

/* Try all grids. Of equal surfaces the one wins that divides x, then y, by least, since vectors lie
 * along these: grids are tried in that order. */
static int choose_grid(geometry *g)
{
    long long least = LLONG_MAX;
    int grid[DIMENSIONS];
    for (grid[0] = 1; grid[0] <= g->ranks; grid[0]++)
        for (grid[1] = 1; grid[1] <= g->ranks / grid[0]; grid[1]++)
            for (grid[2] = 1; grid[2] <= g->ranks / grid[0] / grid[1]; grid[2]++) {
                grid[3] = g->ranks / grid[0] / grid[1] / grid[2];
                int fits = grid[0] * grid[1] * grid[2] * grid[3] == g->ranks;
                for (int d = 0; d < DIMENSIONS; d++)
                    fits = fits && g->whole[d] % grid[d] == 0;
                if (fits && surface_of(g, grid) < least) {
                    least = surface_of(g, grid);
                    memcpy(g->grid, grid, sizeof grid);
                }
            }
    return least == LLONG_MAX ? -1 : 0;
}

static int read_grid(geometry *g, const char *text, complaint *about)
{
    int used = 0, *n = g->grid;
    if (sscanf(text, "%dx%dx%dx%d%n", &n[0], &n[1], &n[2], &n[3], &used) != DIMENSIONS ||
        text[used] != '\0')
        return complain(about, "--grid %.40s: must be four numbers, such as 1x1x2x4", text);
    long long ranks = 1;
    for (int d = 0; d < DIMENSIONS; d++) {
        if (n[d] < 1 || n[d] > g->ranks)
            return complain(about, "--grid %.40s: does not have %d ranks", text, g->ranks);
        ranks *= n[d];
        if (g->whole[d] % n[d] != 0)
            return complain(about, "--grid %.40s: %d ranks do not divide %d sites in %c", text,
                            n[d], g->whole[d], "xyzt"[d]);
    }
    if (ranks != g->ranks)
        return complain(about, "--grid %.40s: has %lld ranks, and there are %d", text, ranks,
                        g->ranks);
    return 0;
}

int divide_lattice(geometry *g, const long long *whole, const char *grid, int rank, int ranks,
                   complaint *about)
{
    *g = (geometry){.rank = rank, .ranks = ranks, .volume = 1, .own_volume = 1};
    for (int d = 0; d < DIMENSIONS; d++)
        g->whole[d] = (int)whole[d];
    if (*grid) {
        if (read_grid(g, grid, about))
            return -1;
    } else if (choose_grid(g)) {
        return complain(about, "%d ranks do not divide a lattice of %dx%dx%dx%d sites: no four "
                               "factors of %d divide its sides",
                        ranks, g->whole[0], g->whole[1], g->whole[2], g->whole[3], ranks);
    }
    for (int d = 0; d < DIMENSIONS; d++) {
        g->own[d] = g->whole[d] / g->grid[d];
        g->own_volume *= g->own[d];
        g->volume *= g->whole[d];
    }
    place_of_rank(g, rank, g->place);
    return 0;
}

void place_of_rank(const geometry *g, int rank, int *place)
{
    for (int d = 0; d < DIMENSIONS; d++) {
        place[d] = rank % g->grid[d];
        rank /= g->grid[d];
    }
}

int neighbour_of(const geometry *g, int dimension, int step)
{
    int rank = 0;
    for (int d = DIMENSIONS - 1; d >= 0; d--) {
        const int at = g->place[d] + (d == dimension ? step + g->grid[d] : 0);
        rank = rank * g->grid[d] + at % g->grid[d];
    }
    return rank;
}

long long site_number(const geometry *g, const int *own)
{
    long long number = 0;
    for (int d = DIMENSIONS - 1; d >= 0; d--)
        number = number * g->whole[d] + g->place[d] * g->own[d] + own[d];
    return number;
}
