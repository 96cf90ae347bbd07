/* What SP and BT have in common: steps of time that solve one direction after the other (RNR-94-007,
 * section 4.1), on a square number of ranks. */
#ifndef WYEAST_IMPLICIT_STEPS_H
#define WYEAST_IMPLICIT_STEPS_H

#include "lines.h"

typedef struct {
    const program_description *program;
    const char *benchmark;
    const flow_reference *references; /* Of each class. */
    double tolerance;
    const line_solver *solver;
    /* What is done with a block's residual before the first direction (0), and after each of them
     * (1 to 3); may be NULL. */
    void (*between)(const flow *f, int after);
    /* NPB's count of operations of a step: of points, and of powers of their mean number along a
     * direction. */
    double of_points, of_mean_square, of_mean, of_step;
} implicit_scheme;

/* All of the program. */
void solve_implicitly(const implicit_scheme *scheme, int *argc, char ***argv);

#endif
