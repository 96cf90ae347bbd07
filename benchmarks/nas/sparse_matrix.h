/* The random sparse matrix of CG (RNR-94-007, section 2.4): its part on one rank. */
#ifndef WYEAST_SPARSE_MATRIX_H
#define WYEAST_SPARSE_MATRIX_H

#include <stddef.h>

#include "benchmark.h"

/* Rows first_row to end_row of columns first_column to end_column, row by row: the places of row i
 * (counted from first_row) are start[i] to start[i + 1], and columns count from first_column. */
typedef struct {
    int first_row, end_row, first_column, end_column;
    size_t *start;
    int *column;
    double *value;
} sparse_matrix;

/* Make the part whose limits are set. The matrix has condition number 1 / smallest_eigenvalue (the
 * specification's rcond) before the shift is taken from its diagonal. */
void make_matrix(const program_description *program, sparse_matrix *m, int order, int nonzeros,
                 double smallest_eigenvalue, double shift);

/* What making the part asks for, and then keeping it: the random vectors that the matrix is made of, of
 * which each rank draws all, and the part, as if no two of them met in an element. */
demand demand_of_matrix(const sparse_matrix *m, int order, int nonzeros);

/* product = matrix * vector, of this part. */
void multiply(const sparse_matrix *m, const double *restrict vector, double *restrict product);

void free_matrix(sparse_matrix *m);

#endif
