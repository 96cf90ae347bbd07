#include "column_solver.h"

#include <math.h>

#include "vector_clones.h"

/* y = y + factor x */
static inline void add_multiple(double *restrict y, const double *restrict x, double factor,
                                size_t count)
{
    for (size_t i = 0; i < count; i++)
        y[i] += factor * x[i];
}

static inline size_t largest(const double *column, size_t from, size_t order)
{
    size_t found = from;
    for (size_t i = from + 1; i < order; i++)
        if (fabs(column[i]) > fabs(column[found]))
            found = i;
    return found;
}

static inline void exchange(double *one, double *other)
{
    const double kept = *one;
    *one = *other;
    *other = kept;
}

VECTOR_CLONES size_t factor_by_columns(double *matrix, size_t order, size_t *pivots)
{
    size_t singular = 0;
    for (size_t k = 0; k < order; k++) {
        double *column = matrix + k * order;
        const size_t pivot = pivots[k] = largest(column, k, order);
        if (column[pivot] == 0.0) {
            singular = k + 1;
            continue;
        }
        exchange(&column[pivot], &column[k]);
        const double scale = -1.0 / column[k];
        for (size_t i = k + 1; i < order; i++)
            column[i] *= scale;
        for (size_t j = k + 1; j < order; j++) {
            double *other = matrix + j * order;
            exchange(&other[pivot], &other[k]);
            add_multiple(other + k + 1, column + k + 1, other[k], order - k - 1);
        }
    }
    return singular;
}

VECTOR_CLONES void solve_by_columns(const double *factors, size_t order, const size_t *pivots,
                                    double *right)
{
    for (size_t k = 0; k < order; k++) {
        exchange(&right[pivots[k]], &right[k]);
        add_multiple(right + k + 1, factors + k * order + k + 1, right[k], order - k - 1);
    }
    for (size_t k = order; k-- > 0;) {
        right[k] /= factors[k * order + k];
        add_multiple(right, factors + k * order, -right[k], k);
    }
}
