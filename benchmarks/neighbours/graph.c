#include "graph.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../common/split_mix.h"

const char *const graph_names[] = {"ring", "complete", "drawn", NULL};

/* Mark `degree` others of a rank, each set of them equally likely (Floyd's sampling without repetition);
 * all others where there are no more. */
static void draw_targets(int rank, int ranks, int degree, unsigned long long seed, char *marked)
{
    const int others = ranks - 1, wanted = degree < others ? degree : others;
    for (int last = others - wanted; last < others; last++) {
        const uint64_t of_rank = (uint64_t)seed + SPLIT_MIX_STEP * ((uint64_t)rank + 1);
        const uint64_t number = mixed(mixed(of_rank) + (uint64_t)last);
        const int drawn = (int)(number % (uint64_t)(last + 1));
        /* Other number k is rank k, or the next one from this rank on. */
        const int one = drawn + (drawn >= rank), instead = last + (last >= rank);
        marked[marked[one] ? instead : one] = 1;
    }
}

static void mark_targets(const char *graph, int rank, int ranks, int degree,
                         unsigned long long seed, char *marked)
{
    memset(marked, 0, (size_t)ranks);
    if (strcmp(graph, "drawn") == 0) {
        draw_targets(rank, ranks, degree, seed, marked);
    } else if (strcmp(graph, "ring") == 0) {
        marked[(rank + 1) % ranks] = marked[(rank + ranks - 1) % ranks] = 1;
    } else {
        memset(marked, 1, (size_t)ranks);
        marked[rank] = 0;
    }
}

int find_neighbours(const char *graph, int rank, int ranks, int degree, unsigned long long seed,
                    neighbours *found)
{
    char *marked = malloc((size_t)ranks);
    *found = (neighbours){calloc((size_t)ranks, sizeof *found->from),
                          calloc((size_t)ranks, sizeof *found->to),
                          calloc((size_t)ranks, sizeof *found->weights), 0, 0};
    if (!marked || !found->from || !found->to || !found->weights) {
        free(marked);
        return -1;
    }
    for (int other = 0; other < ranks; other++) {
        found->weights[other] = 1;
        mark_targets(graph, other, ranks, degree, seed, marked);
        if (marked[rank])
            found->from[found->in++] = other;
        for (int target = 0; other == rank && target < ranks; target++)
            if (marked[target])
                found->to[found->out++] = target;
    }
    free(marked);
    return 0;
}

void free_neighbours(neighbours *of)
{
    free(of->from);
    free(of->to);
    free(of->weights);
}
