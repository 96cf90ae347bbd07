/* All nodes of a graph of DT one after the other in one process, instead of a rank for each.
 *
 * nas_streams CLASS (0 to 3, for S to B) GRAPH (0 to 2) prints nodes, arcs and the checksum. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../../benchmarks/nas/streams.h"
#include "../../../benchmarks/nas/traffic.h"

static double *numbers_of(const dt_reference *reference)
{
    double *numbers = malloc(longest_stream(reference) * sizeof *numbers);
    if (!numbers)
        exit(1);
    return numbers;
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    const dt_reference *reference = &dt_references[atoi(argv[1])];
    const traffic t = make_traffic(atoi(argv[2]), reference->sources);
    stream *streams = calloc((size_t)t.nodes, sizeof *streams);
    double *room = numbers_of(reference);
    long long checksum = 0;
    int arcs = 0;
    for (int node = 0; streams && node < t.nodes; node++) {
        int before[MOST_ARCS], after[MOST_ARCS];
        const int befores = nodes_before(&t, node, before), afters = nodes_after(&t, node, after);
        arcs += afters;
        long long sum = 0;
        if (afters > 0)
            streams[node].values = numbers_of(reference);
        if (befores == 0)
            draw_stream(reference, node, &streams[node]);
        else if (afters > 0)
            clear_stream(reference, &streams[node]);
        for (int i = 0; i < befores; i++) {
            const stream *from = &streams[before[i]];
            stream received = {from->length, numbers_of(reference)};
            memcpy(received.values, from->values, (size_t)from->length * sizeof *from->values);
            if (afters > 0)
                filter_stream(&streams[node], &received, &room, node);
            else
                sum += strength_of(&received, node + 1);
            free(received.values);
        }
        if (befores > 0 && afters > 0)
            share_stream(&streams[node], befores);
        if (afters == 0)
            checksum += sum / befores * (node + 1);
    }
    printf("%d %d %lld\n", t.nodes, arcs, checksum);
    for (int node = 0; streams && node < t.nodes; node++)
        free(streams[node].values);
    free(streams);
    free(room);
    return 0;
}
