#include "graph.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../common/split_mix.h"

const char *const graph_names[] = {"ring", "complete", "drawn", NULL};

/* Mark `degree` others of a rank, each set of them equally likely (Floyd's sampling without repetition);
 * all others where there are no more. Lists them too, and returns how many they are. */
static int draw_targets(int rank, int ranks, int degree, unsigned long long seed, char *marked,
                        int *targets)
{
    const int others = ranks - 1, wanted = degree < others ? degree : others;
    int count = 0;
    for (int last = others - wanted; last < others; last++) {
        const uint64_t of_rank = (uint64_t)seed + SPLIT_MIX_STEP * ((uint64_t)rank + 1);
        const uint64_t number = mixed(mixed(of_rank) + (uint64_t)last);
        const int drawn = (int)(number % (uint64_t)(last + 1));
        /* Other number k is rank k, or the next one from this rank on. */
        const int one = drawn + (drawn >= rank), instead = last + (last >= rank);
        targets[count] = marked[one] ? instead : one;
        marked[targets[count++]] = 1;
    }
    return count;
}

static int list_targets(const char *graph, int rank, int ranks, int degree,
                        unsigned long long seed, char *marked, int *targets)
{
    if (strcmp(graph, "drawn") == 0)
        return draw_targets(rank, ranks, degree, seed, marked, targets);
    int count = 0;
    if (strcmp(graph, "ring") == 0) {
        targets[count++] = (rank + 1) % ranks;
        targets[count++] = (rank + ranks - 1) % ranks;
    } else {
        for (int other = 0; other < ranks; other++)
            if (other != rank)
                targets[count++] = other;
    }
    for (int i = 0; i < count; i++)
        marked[targets[i]] = 1;
    return count;
}

int find_neighbours(const char *graph, int rank, int ranks, int degree, unsigned long long seed,
                    neighbours *found)
{
    const size_t room = ranks > 2 ? (size_t)ranks : 2;
    char *marked = calloc((size_t)ranks, 1);
    int *targets = calloc(room, sizeof *targets);
    *found = (neighbours){calloc((size_t)ranks, sizeof *found->from),
                          calloc((size_t)ranks, sizeof *found->to),
                          calloc((size_t)ranks, sizeof *found->weights), 0, 0};
    if (!marked || !targets || !found->from || !found->to || !found->weights) {
        free(marked);
        free(targets);
        return -1;
    }
    for (int other = 0; other < ranks; other++) {
        found->weights[other] = 1;
        const int count = list_targets(graph, other, ranks, degree, seed, marked, targets);
        if (marked[rank])
            found->from[found->in++] = other;
        for (int target = 0; other == rank && target < ranks; target++)
            if (marked[target])
                found->to[found->out++] = target;
        /* Only these, since all marks of all ranks would be as many as ranks, squared. */
        for (int i = 0; i < count; i++)
            marked[targets[i]] = 0;
    }
    free(marked);
    free(targets);
    return 0;
}

void free_neighbours(neighbours *of)
{
    free(of->from);
    free(of->to);
    free(of->weights);
}
