/* The two routines of BLAS and LAPACK that are measured, by their Fortran names, which every
 * library of either has. Matrices lie by columns. */
#ifndef WYEAST_FORTRAN_BLAS_H
#define WYEAST_FORTRAN_BLAS_H

/* C = alpha A B + beta C, with A and B as they are where both letters are "N". */
void dgemm_(const char *form_of_a, const char *form_of_b, const int *rows, const int *columns,
            const int *inner, const double *alpha, const double *a, const int *rows_of_a,
            const double *b, const int *rows_of_b, const double *beta, double *c,
            const int *rows_of_c);

/* Solve A X = B; A becomes its factors and B the solution. */
void dgesv_(const int *order, const int *right_sides, double *a, const int *rows_of_a,
            int *pivots, double *b, const int *rows_of_b, int *info);

#endif
