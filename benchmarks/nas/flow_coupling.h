/* How a change of the flow at a point enters the linearised equations of the points next to it: the
 * derivatives of the fluxes and of what diffuses, by time step (RNR-94-007, section 4). */
#ifndef WYEAST_FLOW_COUPLING_H
#define WYEAST_FLOW_COUPLING_H

#include "flow.h"
#include "for_this_processor.h"

typedef struct {
    double convection, viscous, diffusion;
} coupling;

/* Of the neighbours at lower coordinates of direction d (sign -1), or at higher ones (+1). */
PART_OF_IT coupling coupling_along(const flow *f, double time_step, int d, double sign)
{
    const double by_square = time_step * f->by_step[d] * f->by_step[d];
    return (coupling){sign * time_step * 0.5 * f->by_step[d], -by_square,
                      -by_square * f->added_diffusion[d]};
}

/* What a point's own change enters its equations with, from direction d alone; 1 is to be added. */
PART_OF_IT coupling coupling_to_itself(const flow *f, double time_step, int d)
{
    const double twice = 2.0 * time_step * f->by_step[d] * f->by_step[d];
    return (coupling){0.0, twice, twice * f->added_diffusion[d]};
}

#endif
