/* The four operators of MG (RNR-94-007, section 2.5), on one rank's points of a cube. Each has one
 * coefficient for a point, its 6 neighbours at a face, its 12 at an edge and its 8 at a corner. */
#ifndef WYEAST_STENCILS_H
#define WYEAST_STENCILS_H

#include "cube.h"

/* residual = right - A u. `residual` and `right` may be the same; `lines` has room for two rows. */
void subtract_operator(const cube *c, const double *u, const double *right, double *residual,
                       double *lines);

/* u += S residual. */
void smooth(const cube *c, const double smoother[4], const double *residual, double *u,
            double *lines);

/* One row of the coarser cube: P residual, of the row with the place y, z there. `coarse` is where
 * its first own point goes. */
void restrict_row(const cube *fine, const double *residual, int points, int y, int z,
                  double *coarse, double *lines);

/* u += Q coarse, on the border too. This rank's points begin in `coarse` after `first` ones. */
void interpolate(const cube *fine, double *u, const cube *coarse, const int first[DIMENSIONS],
                 const double *values, double *lines);

#endif
