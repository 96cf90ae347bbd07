/* What the NAS programs ask for in a class on a number of ranks, of which none is started: a line for each
 * of the benchmarks that may have so many ranks, with the bytes of all ranks and the elements that any of
 * them counts at most in one call.
 *
 * nas_demands CLASS RANKS; nas_demands --keys CLASS FIRST COUNT draws keys of IS. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../../benchmarks/nas/block_lines.h"
#include "../../../benchmarks/nas/cube.h"
#include "../../../benchmarks/nas/flow_sweeps.h"
#include "../../../benchmarks/nas/keys.h"
#include "../../../benchmarks/nas/lines.h"
#include "../../../benchmarks/nas/pencils.h"
#include "../../../benchmarks/nas/scalar_lines.h"
#include "../../../benchmarks/nas/sparse_matrix.h"

typedef int (*asking)(size_t size, int ranks, int rank, demand *asked);

static int ask_keys(size_t size, int ranks, int rank, demand *asked)
{
    *asked = demand_of_keys(&is_references[size], ranks, rank);
    return 0;
}

/* Of a grid of so many rows of ranks as cg.c makes. */
static int ask_matrix(size_t size, int ranks, int rank, demand *asked)
{
    const cg_reference *r = &cg_references[size];
    int rows = ranks;
    while (ranks % rows || rows > ranks / rows)
        rows--;
    const int columns = ranks / rows, row = rank / columns, column = rank % columns;
    const sparse_matrix m = {
        .first_row = (int)first_of_part(r->order, ranks, row * columns),
        .end_row = (int)first_of_part(r->order, ranks, (row + 1) * columns),
        .first_column = (int)first_of_part(r->order, ranks, column * rows),
        .end_column = (int)first_of_part(r->order, ranks, (column + 1) * rows),
    };
    *asked = demand_of_matrix(&m, r->order, r->nonzeros);
    return 0;
}

static int ask_cubes(size_t size, int ranks, int rank, demand *asked)
{
    rank_grid g = {0};
    if (ranks & (ranks - 1) || divide_cube(&g, mg_references[size].points, rank, ranks))
        return -1;
    *asked = demand_of_cubes(&g, mg_references[size].points);
    return 0;
}

static int ask_pencils(size_t size, int ranks, int rank, demand *asked)
{
    pencils p = {.across = 0};
    if (divide_pencils(&p, ft_references[size].points, rank, ranks))
        return -1;
    *asked = demand_of_pencils(&p);
    return 0;
}

static int ask_wave(size_t size, int ranks, int rank, demand *asked)
{
    wave w = {.rank = 0};
    flow f;
    if (divide_wave(&w, &f, lu_references[size].points, rank, ranks))
        return -1;
    *asked = demand_of_wave(&f);
    return 0;
}

static int ask_lines(const flow_reference *r, const line_solver *solver, int ranks, int rank,
                     demand *asked)
{
    multi_partition p = {.rank = 0};
    if (divide_partition(&p, r->points, rank, ranks))
        return -1;
    p.blocks = calloc((size_t)p.parts, sizeof *p.blocks);
    if (!p.blocks)
        return -1;
    describe_blocks(&p, r->points);
    *asked = demand_of_lines(&p, r->points, solver);
    free(p.blocks);
    return 0;
}

static int ask_scalar_lines(size_t size, int ranks, int rank, demand *asked)
{
    return ask_lines(&sp_references[size], &scalar_lines, ranks, rank, asked);
}

static int ask_block_lines(size_t size, int ranks, int rank, demand *asked)
{
    return ask_lines(&bt_references[size], &block_lines, ranks, rank, asked);
}

static void print_demand(const char *name, asking ask, size_t size, int ranks)
{
    demand all = {0.0, 0.0};
    for (int rank = 0; rank < ranks; rank++) {
        demand one;
        if (ask(size, ranks, rank, &one))
            return;
        all.bytes += one.bytes;
        if (one.most_counted > all.most_counted)
            all.most_counted = one.most_counted;
    }
    printf("%s %.0f %.0f\n", name, all.bytes, all.most_counted);
}

static size_t size_of(const char *name)
{
    chosen_class = name;
    return class_index();
}

static int print_keys(const char *size, const char *first, const char *count)
{
    const int keys = atoi(count);
    int *drawn = calloc((size_t)keys, sizeof *drawn);
    if (!drawn)
        return 1;
    draw_keys(&is_references[size_of(size)], atoll(first), keys, drawn);
    for (int i = 0; i < keys; i++)
        printf("%d\n", drawn[i]);
    free(drawn);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 5 && strcmp(argv[1], "--keys") == 0)
        return print_keys(argv[2], argv[3], argv[4]);
    if (argc != 3)
        return 2;
    const size_t size = size_of(argv[1]);
    const int ranks = atoi(argv[2]);
    print_demand("IS", ask_keys, size, ranks);
    print_demand("CG", ask_matrix, size, ranks);
    print_demand("MG", ask_cubes, size, ranks);
    print_demand("FT", ask_pencils, size, ranks);
    print_demand("LU", ask_wave, size, ranks);
    print_demand("SP", ask_scalar_lines, size, ranks);
    print_demand("BT", ask_block_lines, size, ranks);
    return 0;
}
