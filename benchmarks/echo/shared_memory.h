/* Echoes through memory that both ranks have mapped: each message is copied in and copied out. */
#ifndef WYEAST_SHARED_MEMORY_H
#define WYEAST_SHARED_MEMORY_H

#include <stddef.h>

#include "../common/arguments.h"
#include "partner.h"

/* Map memory for messages of some size on both ranks. Collective over MPI_COMM_WORLD. Returns it,
 * or NULL with a sentence on both ranks. */
shared_region *share_memory(size_t largest, complaint *about);

void unmap_memory(shared_region *region);

/* Of an operation; the context is a partner. A failure ends all ranks with a sentence. */
void echo_shared_memory(void *context);

#endif
