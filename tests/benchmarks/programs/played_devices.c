/* Counts devices below a folder, has a command change their counters as messages would, and prints what
 * they have carried: `played_devices DIR COMMAND`. */
#include <stdio.h>
#include <stdlib.h>

#include "../../../benchmarks/preflight/device_counters.h"

int main(int argc, char **argv)
{
    static device_counts before, after;
    if (argc != 3)
        return 2;
    await_counters(argv[1]);
    count_devices(argv[1], &before);
    if (system(argv[2]) != 0)
        return 1;
    await_counters(argv[1]);
    count_devices(argv[1], &after);
    subtract_devices(&after, &before);
    print_devices(stdout, argv[1], &after, 1);
    return 0;
}
