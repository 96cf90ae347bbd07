#include "traffic.h"

#include "reference_values.h"

/* A layer of nodes: the first, and how many. */
typedef struct {
    int first, count;
} layer;

/* The layers of a black hole; the last has the sink. */
static layer next_layer(layer l)
{
    return (layer){l.first + l.count, (l.count + MOST_ARCS - 1) / MOST_ARCS};
}

static layer layer_of(const traffic *t, int node, layer *before)
{
    layer l = {0, t->sources};
    *before = (layer){0, 0};
    while (node >= l.first + l.count) {
        *before = l;
        l = next_layer(l);
    }
    return l;
}

static int before_in_hole(const traffic *t, int node, int before[MOST_ARCS])
{
    layer wider;
    const layer own = layer_of(t, node, &wider);
    int count = 0;
    for (int i = (node - own.first) * MOST_ARCS; count < MOST_ARCS && i < wider.count; i++)
        before[count++] = wider.first + i;
    return count;
}

static int after_in_hole(const traffic *t, int node, int after[MOST_ARCS])
{
    layer wider;
    const layer own = layer_of(t, node, &wider);
    if (own.count == 1)
        return 0;
    after[0] = next_layer(own).first + (node - own.first) / MOST_ARCS;
    return 1;
}

/* A white hole's nodes are a black hole's in the opposite order, and so are its arcs' directions. */
static int mirrored(const traffic *t, int node, int (*in_hole)(const traffic *, int, int[MOST_ARCS]),
                    int found[MOST_ARCS])
{
    const int count = in_hole(t, t->nodes - 1 - node, found);
    for (int i = 0; i < count; i++)
        found[i] = t->nodes - 1 - found[i];
    return count;
}

/* In a shuffle two nodes of a layer whose places differ in one bit have their arcs in common: the lowest
 * bit after the first layer, the next one after the second, and so on. */
static int shuffled(const traffic *t, int node, int to_layer, int bit, int found[MOST_ARCS])
{
    const int place = node % t->sources;
    found[0] = to_layer * t->sources + (place & ~bit);
    found[1] = to_layer * t->sources + (place | bit);
    return 2;
}

traffic make_traffic(int kind, int sources)
{
    traffic t = {.kind = kind, .sources = sources};
    if (kind == SHUFFLE) {
        int layers = 1;
        for (int bit = 1; bit < sources; bit *= 2)
            layers++;
        t.nodes = layers * sources;
        t.arcs = 2 * (layers - 1) * sources;
        return t;
    }
    layer l = {0, sources};
    while (l.count > 1)
        l = next_layer(l);
    t.nodes = l.first + 1;
    t.arcs = t.nodes - 1;
    return t;
}

int nodes_before(const traffic *t, int node, int before[MOST_ARCS])
{
    const int place = node / t->sources;
    switch (t->kind) {
    case BLACK_HOLE:
        return before_in_hole(t, node, before);
    case WHITE_HOLE:
        return mirrored(t, node, after_in_hole, before);
    default:
        return place == 0 ? 0 : shuffled(t, node, place - 1, 1 << (place - 1), before);
    }
}

int nodes_after(const traffic *t, int node, int after[MOST_ARCS])
{
    const int place = node / t->sources;
    switch (t->kind) {
    case BLACK_HOLE:
        return after_in_hole(t, node, after);
    case WHITE_HOLE:
        return mirrored(t, node, before_in_hole, after);
    default:
        return (place + 1) * t->sources == t->nodes ? 0 : shuffled(t, node, place + 1, 1 << place, after);
    }
}
