/* A gauge field in a file, from which a simulation continues bit for bit, with any ranks. */
#ifndef WYEAST_CHECKPOINT_H
#define WYEAST_CHECKPOINT_H

#include "simulation.h"

/* Write the links and the number of the next trajectory: aside first, then in place of `path`.
 * Returns 0, or -1 with a sentence, on all ranks alike. Collective. */
int write_checkpoint(simulation *s, const char *path, complaint *about);

/* Read them; a file of another lattice, beta, seed or precision is refused. As above. */
int read_checkpoint(simulation *s, const char *path, complaint *about);

#endif
