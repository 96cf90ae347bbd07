#include "ranks_alike.h"

#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* FNV-1a: ranks of one text get one number; those of others may, and are told apart afterwards. */
static int number_of(const char *text)
{
    uint32_t number = 2166136261u;
    for (const unsigned char *c = (const unsigned char *)text; *c; c++)
        number = (number ^ *c) * 16777619u;
    return (int)(number & INT_MAX);
}

/* Whether this rank says something else than the lowest rank of its group. */
static int differs(MPI_Comm group, const char *own)
{
    char first[LONGEST_SAID];
    memcpy(first, own, sizeof first);
    MPI_Bcast(first, (int)sizeof first, MPI_CHAR, 0, group);
    return strcmp(first, own) != 0;
}

static int any_of_world(int mine)
{
    int any = mine;
    MPI_Allreduce(&mine, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    return any;
}

void find_alike(ranks_alike *found, const char *text)
{
    int rank, within;
    char own[LONGEST_SAID] = "";
    snprintf(own, sizeof own, "%s", text);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_split(MPI_COMM_WORLD, number_of(own), rank, &found->sharing);
    for (int other; any_of_world(other = differs(found->sharing, own));) {
        MPI_Comm apart;
        MPI_Comm_split(found->sharing, other, rank, &apart);
        MPI_Comm_free(&found->sharing);
        found->sharing = apart;
    }
    MPI_Comm_rank(found->sharing, &within);
    MPI_Comm_split(MPI_COMM_WORLD, within == 0 ? 0 : MPI_UNDEFINED, rank, &found->leaders);
    int leads = within == 0;
    MPI_Allreduce(&leads, &found->texts, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

void free_alike(ranks_alike *found)
{
    MPI_Comm_free(&found->sharing);
    if (found->leaders != MPI_COMM_NULL)
        MPI_Comm_free(&found->leaders);
}
