#include "communicators.h"

#include <stdlib.h>

#include "counters.h"

static group_of_ranks of_world = {.references = 1, .neighbours = -1};
static MPI_Group world_group;
static int communicator_key = MPI_KEYVAL_INVALID, window_key = MPI_KEYVAL_INVALID;

static void drop(group_of_ranks *group)
{
    if (--group->references > 0)
        return;
    free(group->neighbour);
    free(group->world);
    free(group);
}

/* MPI calls these where a communicator or a window is freed: within a call of the program. */
static int forget_communicator(MPI_Comm comm, int key, void *group, void *state)
{
    (void)comm, (void)key, (void)state;
    release_group(group);
    return MPI_SUCCESS;
}

static int forget_window(MPI_Win window, int key, void *group, void *state)
{
    (void)window, (void)key, (void)state;
    release_group(group);
    return MPI_SUCCESS;
}

int start_translating(void)
{
    PMPI_Comm_size(MPI_COMM_WORLD, &of_world.size);
    PMPI_Comm_rank(MPI_COMM_WORLD, &of_world.own_rank);
    of_world.own_size = of_world.size;
    return PMPI_Comm_group(MPI_COMM_WORLD, &world_group) != MPI_SUCCESS ||
                   PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, forget_communicator,
                                           &communicator_key, NULL) != MPI_SUCCESS ||
                   PMPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, forget_window, &window_key,
                                          NULL) != MPI_SUCCESS
               ? -1
               : 0;
}

void stop_translating(void)
{
    PMPI_Group_free(&world_group);
    PMPI_Comm_free_keyval(&communicator_key);
    PMPI_Win_free_keyval(&window_key);
    free(of_world.neighbour);
    of_world.neighbour = NULL;
}

/* Make the translation of a group; it frees the group. */
static group_of_ranks *translate(MPI_Group group)
{
    int size = 0;
    PMPI_Group_size(group, &size);
    group_of_ranks *made = calloc(1, sizeof *made);
    int *world = calloc((size_t)size + 1, sizeof *world);
    int *ranks = calloc((size_t)size + 1, sizeof *ranks);
    if (made && world && ranks) {
        for (int i = 0; i < size; i++)
            ranks[i] = i;
        PMPI_Group_translate_ranks(group, size, ranks, world_group, world);
        for (int i = 0; i < size; i++)
            if (world[i] == MPI_UNDEFINED)
                world[i] = -1;
        *made = (group_of_ranks){.references = 1, .size = size, .own_size = size, .neighbours = -1,
                                 .world = world};
        PMPI_Group_rank(group, &made->own_rank);
    } else {
        free(made);
        free(world);
        made = NULL;
    }
    free(ranks);
    PMPI_Group_free(&group);
    return made;
}

static group_of_ranks *translate_communicator(MPI_Comm comm)
{
    int between_groups = 0;
    MPI_Group group;
    PMPI_Comm_test_inter(comm, &between_groups);
    if ((between_groups ? PMPI_Comm_remote_group(comm, &group) : PMPI_Comm_group(comm, &group)) !=
        MPI_SUCCESS)
        return NULL;
    group_of_ranks *made = translate(group);
    if (made && between_groups) {
        made->between_groups = true;
        PMPI_Comm_size(comm, &made->own_size);
        PMPI_Comm_rank(comm, &made->own_rank);
    }
    return made;
}

group_of_ranks *group_of_communicator(MPI_Comm comm)
{
    if (comm == MPI_COMM_WORLD)
        return &of_world;
    void *found = NULL;
    int is_there = 0;
    /* Two threads must not both attach one: the second would free the first one's. */
    lock_shared();
    PMPI_Comm_get_attr(comm, communicator_key, &found, &is_there);
    if (!is_there) {
        found = translate_communicator(comm);
        if (found && PMPI_Comm_set_attr(comm, communicator_key, found) != MPI_SUCCESS) {
            drop(found);
            found = NULL;
        }
    }
    unlock_shared();
    return found;
}

group_of_ranks *group_of_window(MPI_Win window)
{
    void *found = NULL;
    int is_there = 0;
    MPI_Group group;
    lock_shared();
    PMPI_Win_get_attr(window, window_key, &found, &is_there);
    if (!is_there && PMPI_Win_get_group(window, &group) == MPI_SUCCESS) {
        found = translate(group);
        if (found && PMPI_Win_set_attr(window, window_key, found) != MPI_SUCCESS) {
            drop(found);
            found = NULL;
        }
    }
    unlock_shared();
    return found;
}

int world_rank(const group_of_ranks *group, int rank)
{
    if (!group || rank < 0 || rank >= group->size)
        return -1;
    return group->world ? group->world[rank] : rank;
}

static int *make_list(int count)
{
    return calloc((size_t)count + 1, sizeof(int));
}

void find_neighbours(group_of_ranks *group, MPI_Comm comm)
{
    if (group->neighbours >= 0)
        return;
    int topology = MPI_UNDEFINED, count = 0, *list = NULL;
    PMPI_Topo_test(comm, &topology);
    if (topology == MPI_CART) {
        int dimensions = 0;
        PMPI_Cartdim_get(comm, &dimensions);
        if ((list = make_list(2 * dimensions)))
            /* A block is sent downwards and one upwards, for each dimension. */
            for (int i = 0; i < dimensions; i++, count += 2)
                PMPI_Cart_shift(comm, i, 1, &list[count], &list[count + 1]);
    } else if (topology == MPI_GRAPH) {
        PMPI_Graph_neighbors_count(comm, group->own_rank, &count);
        if ((list = make_list(count)))
            PMPI_Graph_neighbors(comm, group->own_rank, count, list);
#if HAS_MPI3
    } else if (topology == MPI_DIST_GRAPH) {
        int incoming = 0, weighted = 0;
        PMPI_Dist_graph_neighbors_count(comm, &incoming, &count, &weighted);
        int *others = make_list(2 * incoming), *weights = make_list(count);
        if ((list = make_list(count)) && others && weights)
            PMPI_Dist_graph_neighbors(comm, incoming, others, others + incoming, count, list,
                                      weights);
        free(others);
        free(weights);
#endif
    }
    group->neighbours = list ? count : 0;
    group->neighbour = list;
}

group_of_ranks *keep_group(group_of_ranks *group)
{
    lock_shared();
    if (group)
        group->references++;
    unlock_shared();
    return group;
}

void release_group(group_of_ranks *group)
{
    lock_shared();
    if (group)
        drop(group);
    unlock_shared();
}
