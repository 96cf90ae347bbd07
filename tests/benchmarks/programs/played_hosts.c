/* Before a program: a host for every HOST_RANKS ranks in a row, by the number that the launcher gives. */
#include <stdio.h>
#include <stdlib.h>

int gethostname(char *name, size_t length)
{
    const char *rank = getenv("PMI_RANK"), *of_host = getenv("HOST_RANKS");
    rank = rank ? rank : getenv("OMPI_COMM_WORLD_RANK");
    snprintf(name, length, "host%d", rank && of_host ? atoi(rank) / atoi(of_host) : 0);
    return 0;
}
