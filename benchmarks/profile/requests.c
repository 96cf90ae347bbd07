#include "requests.h"

#include <stdlib.h>

#include "counters.h"

/* Open addressing with linear probing; at most half full, a power of two of places. */
static awaited *places;
static bool *taken;
static size_t place_count, taken_count;

static size_t first_place(uintptr_t handle)
{
    return (size_t)((uint64_t)handle * 0x9E3779B97F4A7C15u >> 20) & (place_count - 1);
}

/* Return where one more could go that is noted of a handle, behind the others of it. */
static size_t free_place(uintptr_t handle)
{
    size_t place = first_place(handle);
    while (taken[place])
        place = (place + 1) & (place_count - 1);
    return place;
}

/* Return where a handle is, the first one noted of it, or where it would go. */
static size_t place_of(uintptr_t handle)
{
    size_t place = first_place(handle);
    while (taken[place] && places[place].handle != handle)
        place = (place + 1) & (place_count - 1);
    return place;
}

static bool grow(void)
{
    awaited *old = places;
    bool *old_taken = taken;
    size_t old_count = place_count, count = old_count ? 2 * old_count : 64;
    awaited *grown = calloc(count, sizeof *grown);
    bool *grown_taken = calloc(count, sizeof *grown_taken);
    if (!grown || !grown_taken) {
        free(grown);
        free(grown_taken);
        return false;
    }
    places = grown, taken = grown_taken, place_count = count;
    for (size_t i = 0; i < old_count; i++)
        if (old_taken[i]) {
            size_t place = free_place(old[i].handle);
            places[place] = old[i];
            taken[place] = true;
        }
    free(old);
    free(old_taken);
    return true;
}

/* Empty a place, and move what had to step over it. */
static void clear(size_t place)
{
    taken[place] = false;
    taken_count--;
    for (size_t next = (place + 1) & (place_count - 1); taken[next];
         next = (next + 1) & (place_count - 1)) {
        size_t wanted = first_place(places[next].handle);
        if (((next - wanted) & (place_count - 1)) >= ((next - place) & (place_count - 1))) {
            places[place] = places[next];
            taken[place] = true;
            taken[next] = false;
            place = next;
        }
    }
}

bool note_awaited(awaited one)
{
    group_of_ranks *before = NULL;
    lock_shared();
    bool noted = 2 * (taken_count + 1) <= place_count || grow();
    if (noted) {
        /* While one thread comes back from its wait, another may get the request's handle for its
         * own: both are to be counted, the first one first. */
        size_t place = several_threads_call() ? free_place(one.handle) : place_of(one.handle);
        if (taken[place])
            before = places[place].group;
        else
            taken_count++;
        places[place] = one;
        taken[place] = true;
    }
    unlock_shared();
    release_group(noted ? before : one.group);
    return noted;
}

static bool is_persistent(awaited_kind kind)
{
    return kind >= AWAITS_SEND;
}

bool complete_awaited(uintptr_t handle, awaited *found)
{
    bool is_there = false;
    lock_shared();
    if (taken_count) {
        size_t place = place_of(handle);
        is_there = taken[place];
        if (is_there) {
            *found = places[place];
            if (!is_persistent(found->kind))
                clear(place);
        }
    }
    unlock_shared();
    return is_there;
}

bool forget_awaited(uintptr_t handle)
{
    awaited found = {.group = NULL, .kind = AWAITS_SEND};
    lock_shared();
    if (taken_count) {
        size_t place = place_of(handle);
        if (taken[place]) {
            found = places[place];
            clear(place);
        }
    }
    unlock_shared();
    release_group(found.group);
    return found.kind == AWAITS_RECEIVE;
}

bool mark_started(uintptr_t handle, bool started)
{
    bool before = false;
    lock_shared();
    if (taken_count) {
        size_t place = place_of(handle);
        before = taken[place] && places[place].started;
        if (taken[place])
            places[place].started = started;
    }
    unlock_shared();
    return before;
}

uint64_t free_awaited(void)
{
    uint64_t receives = 0;
    for (size_t i = 0; i < place_count; i++)
        if (taken[i]) {
            receives += places[i].kind == AWAITS_RECEIVE;
            release_group(places[i].group);
        }
    free(places);
    free(taken);
    places = NULL, taken = NULL, place_count = taken_count = 0;
    return receives;
}
