/* Linear systems as LINPACK solves them: by columns, without blocks, with partial pivoting
 * (Dongarra, Moler, Bunch, Stewart: LINPACK Users' Guide, 1979, chapter 1). */
#ifndef WYEAST_COLUMN_SOLVER_H
#define WYEAST_COLUMN_SOLVER_H

#include <stddef.h>

/* Replace a matrix, which lies by columns, by its factors. Returns 0, or the number from 1 of the
 * column whose pivot is 0: the matrix is singular. */
size_t factor_by_columns(double *matrix, size_t order, size_t *pivots);

/* Replace a right side by the solution. */
void solve_by_columns(const double *factors, size_t order, const size_t *pivots, double *right);

#endif
