/* More message sizes where a curve bends, as mpptest finds them. */
#ifndef WYEAST_REFINEMENT_H
#define WYEAST_REFINEMENT_H

#include <stddef.h>

typedef struct {
    double tolerance;  /* A middle point this part off the straight line bends the curve. */
    size_t least_gap;  /* Sizes are no closer than this, and a multiple of it apart. */
    size_t most_added; /* Sizes between the given ones, in all. */
} refinement;

/* Measure the middle of every two neighbouring sizes, and go on on both sides of it where it does
 * not lie on the line between them. `sizes` ascend and have `times` on rank 0; `measure` is called
 * on all ranks and returns the time on rank 0. Collective over MPI_COMM_WORLD. Returns how many
 * sizes were added. */
size_t refine(const refinement *how, const size_t *sizes, const double *times, size_t count,
              double (*measure)(void *context, size_t bytes), void *context);

#endif
