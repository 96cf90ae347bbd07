/* What must hold of the dynamics whatever the numbers: --check. */
#ifndef WYEAST_PROOFS_H
#define WYEAST_PROOFS_H

#include "simulation.h"

extern const char *const proof_names[];

/* One of the names' proofs from the present field. Returns the largest deviation: of `reversibility`
 * between the links before a trajectory and after it and its reverse; of `gauge` between the mean
 * plaquettes, and the energies' changes per link, of a trajectory and of the same one after a
 * random gauge transformation. Links that did not move, or were not transformed, prove nothing: then it
 * is 1. The field is not what it was afterwards. Collective. */
double prove(simulation *s, const char *name);

#endif
