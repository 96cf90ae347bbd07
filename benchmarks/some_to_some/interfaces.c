#include "interfaces.h"

#include <limits.h>
#include <stdlib.h>

#include "../common/split_mix.h"

#define FIRST_ROOM 16

/* A whole number below `limit`, each equally likely: what would favour the small ones is dropped. */
static unsigned long long below(uint64_t *state, unsigned long long limit)
{
    const unsigned long long unfair = ULLONG_MAX % limit;
    unsigned long long number;
    do
        number = next_number(state);
    while (number >= ULLONG_MAX - unfair);
    return number % limit;
}

static size_t random_size(const drawing *how, uint64_t *state)
{
    return how->least_bytes + (size_t)below(state, how->most_bytes - how->least_bytes + 1ull);
}

static interface draw_one(const drawing *how, uint64_t *state)
{
    interface one = {0};
    one.source = (int)below(state, (unsigned)how->ranks);
    one.destination = (int)below(state, (unsigned)how->ranks - 1);
    one.destination += one.destination >= one.source;
    one.bytes = random_size(how, state);
    return one;
}

static int make_room(interfaces *found)
{
    if (found->count < found->room)
        return 0;
    if (found->room > SIZE_MAX / 2 / sizeof *found->own)
        return -1;
    const size_t room = found->room ? 2 * found->room : FIRST_ROOM;
    interface *grown = realloc(found->own, room * sizeof *grown);
    if (!grown)
        return -1;
    found->own = grown;
    found->room = room;
    return 0;
}

/* Count a message, and lay it out behind this rank's others if it is its own. */
static int take(interfaces *found, int rank, interface one)
{
    one.number = found->of_all++;
    found->bytes_of_all += one.bytes;
    if (one.source != rank && one.destination != rank)
        return 0;
    size_t *used = one.source == rank ? &found->sent : &found->received;
    if (one.bytes > SIZE_MAX / 2 - *used || make_room(found))
        return -1;
    one.offset = *used;
    *used += one.bytes;
    found->receives += one.destination == rank;
    found->own[found->count++] = one;
    return 0;
}

int draw_interfaces(const drawing *how, int rank, interfaces *found)
{
    *found = (interfaces){0};
    uint64_t state = how->seed, again = how->seed;
    const size_t drawn = how->messages * (size_t)how->ranks;
    for (size_t i = 0; i < drawn; i++)
        if (take(found, rank, draw_one(how, &state)))
            return -1;
    /* The sizes of the ways back follow; whose they are is drawn again rather than kept. */
    for (size_t i = 0; how->is_double && i < drawn; i++) {
        const interface there = draw_one(how, &again);
        const interface back = {.source = there.destination, .destination = there.source,
                                .bytes = random_size(how, &state)};
        if (take(found, rank, back))
            return -1;
    }
    return 0;
}

void free_interfaces(interfaces *found)
{
    free(found->own);
    *found = (interfaces){0};
}
