/* Print the bytes of the last-level caches that a folder lists as /sys/devices/system/cpu does. */
#include <stdio.h>

#include "../../../benchmarks/node_rates/cache_size.h"

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    printf("%.0f\n", caches_listed_in(argv[1]));
    return 0;
}
