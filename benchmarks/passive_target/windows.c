#include "windows.h"

#include <stdlib.h>
#include <string.h>

#include "../common/buffers.h"
#include "../common/standard.h"

const char *const window_names[] = {"create", "allocate", "shared", "dynamic", NULL};

#if HAS_MPI3
static int is(const memory_window *window, const char *kind)
{
    return strcmp(window->kind, kind) == 0;
}

static int share_memory(void)
{
    int together;
    MPI_Comm sharing;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &sharing);
    MPI_Comm_size(sharing, &together);
    MPI_Comm_free(&sharing);
    return together == 2;
}

const char *lacks_window(const char *kind)
{
    return strcmp(kind, "shared") == 0 && !share_memory() ? "the ranks share no memory" : NULL;
}

/* The window has no memory of its own: the target says where what it adds is. */
static int attach(memory_window *window, MPI_Aint bytes)
{
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    window->memory = page_aligned((size_t)bytes);
    if (!window->memory)
        return -1;
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &window->handle);
    MPI_Win_attach(window->handle, window->memory, bytes);
    if (rank == TARGET)
        MPI_Get_address(window->memory, &window->place);
    MPI_Bcast(&window->place, 1, MPI_AINT, TARGET, MPI_COMM_WORLD);
    return 0;
}

int open_window(memory_window *window, const char *kind, size_t wanted)
{
    const MPI_Aint bytes = (MPI_Aint)(wanted ? wanted : 1);
    *window = (memory_window){.kind = kind};
    if (is(window, "dynamic")) {
        if (attach(window, bytes))
            return -1;
    } else if (is(window, "create")) {
        window->memory = page_aligned((size_t)bytes);
        if (!window->memory)
            return -1;
        MPI_Win_create(window->memory, bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window->handle);
    } else {
        /* Errors in these two are the end of the program, as MPI has it by default. */
        if (is(window, "shared"))
            MPI_Win_allocate_shared(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window->memory,
                                    &window->handle);
        else
            MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window->memory,
                             &window->handle);
        memset(window->memory, 0, (size_t)bytes);
    }
    MPI_Win_lock_all(0, window->handle);
    return 0;
}

void close_window(memory_window *window)
{
    MPI_Win_unlock_all(window->handle);
    if (is(window, "dynamic")) {
        MPI_Barrier(MPI_COMM_WORLD); /* Nobody is in the memory any more. */
        MPI_Win_detach(window->handle, window->memory);
    }
    MPI_Win_free(&window->handle);
    if (is(window, "dynamic") || is(window, "create"))
        free(window->memory);
}

int has_one_memory(const memory_window *window)
{
    int *model, found;
    MPI_Win_get_attr(window->handle, MPI_WIN_MODEL, &model, &found);
    return found && *model == MPI_WIN_UNIFIED;
}
#else
const char *lacks_window(const char *kind)
{
    (void)kind;
    return "this MPI has no MPI_Win_lock_all";
}

int open_window(memory_window *window, const char *kind, size_t bytes)
{
    (void)window;
    (void)kind;
    (void)bytes;
    return -1;
}

void close_window(memory_window *window)
{
    (void)window;
}

int has_one_memory(const memory_window *window)
{
    (void)window;
    return 0;
}
#endif
