#include "sparse_matrix.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "random_numbers.h"

/* The matrix is a sum of outer products of sparse random vectors with themselves; all ranks draw all
 * of these, and each adds up what falls into its part. */
typedef struct {
    int order, in_each; /* Elements of a vector, at most. */
    int *count;         /* Of a vector's elements. */
    int *place;
    double *value;
    double *weight;
} random_vectors;

/* Draw one vector, and set its element `own` to 1/2. `drawn` has the number of the last vector that
 * had each place. */
static uint64_t draw_vector(random_vectors *v, int own, int *drawn, uint64_t x)
{
    int power = 1, count = 0, own_is_there = 0;
    while (power < v->order)
        power *= 2;
    int *place = v->place + (size_t)own * (size_t)v->in_each;
    double *value = v->value + (size_t)own * (size_t)v->in_each;
    while (count < v->in_each - 1) {
        const double element = uniform(x = next_random(x));
        const int at = (int)((double)power * uniform(x = next_random(x)));
        if (at >= v->order || drawn[at] == own + 1)
            continue;
        drawn[at] = own + 1;
        own_is_there |= at == own;
        place[count] = at;
        value[count++] = at == own ? 0.5 : element;
    }
    if (!own_is_there) {
        place[count] = own;
        value[count++] = 0.5;
    }
    v->count[own] = count;
    return x;
}

static random_vectors draw_vectors(const program_description *program, int order, int nonzeros,
                                   double smallest_eigenvalue)
{
    const size_t n = (size_t)order, in_each = (size_t)nonzeros + 1;
    random_vectors v = {.order = order, .in_each = nonzeros + 1};
    v.count = reserve(program, n, sizeof *v.count);
    v.place = reserve(program, n * in_each, sizeof *v.place);
    v.value = reserve(program, n * in_each, sizeof *v.value);
    v.weight = reserve(program, n, sizeof *v.weight);
    int *drawn = reserve(program, n, sizeof *drawn);
    const double ratio = pow(smallest_eigenvalue, 1.0 / order);
    uint64_t x = next_random(RANDOM_SEED); /* The first number is for nothing. */
    double weight = 1.0;
    for (int i = 0; i < order; i++) {
        x = draw_vector(&v, i, drawn, x);
        v.weight[i] = weight;
        weight *= ratio;
    }
    free(drawn);
    return v;
}

static void free_vectors(random_vectors *v)
{
    free(v->count);
    free(v->place);
    free(v->value);
    free(v->weight);
}

/* Where each place is drawn: for place i of the rows, elements holder[start[i]] to
 * holder[start[i + 1]] of all vectors' elements. */
typedef struct {
    size_t *start, *element;
} holders;

static holders find_holders(const program_description *program, const random_vectors *v,
                            const sparse_matrix *m)
{
    const size_t rows = (size_t)(m->end_row - m->first_row);
    holders h = {reserve(program, rows + 2, sizeof *h.start), NULL};
    /* Counted two places on, then summed up, then moved by one as the elements are put there. */
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < v->order; i++)
            for (int j = 0; j < v->count[i]; j++) {
                const size_t element = (size_t)i * (size_t)v->in_each + (size_t)j;
                const int at = v->place[element];
                if (at < m->first_row || at >= m->end_row)
                    continue;
                const size_t row = (size_t)(at - m->first_row);
                if (pass == 0)
                    h.start[row + 2]++;
                else
                    h.element[h.start[row + 1]++] = element;
            }
        if (pass == 0) {
            for (size_t row = 0; row < rows; row++)
                h.start[row + 2] += h.start[row + 1];
            h.element = reserve(program, h.start[rows + 1], sizeof *h.element);
        }
    }
    return h;
}

/* One row while it is summed up: its columns in the order found, and a sum for every column. */
typedef struct {
    int *columns, count;
    int *row_of_column; /* The last row, plus 1, that had the column. */
    double *sum;
} row_sum;

static void add_row(row_sum *r, const random_vectors *v, const holders *h, const sparse_matrix *m,
                    int row)
{
    r->count = 0;
    const size_t index = (size_t)(row - m->first_row);
    for (size_t k = h->start[index]; k < h->start[index + 1]; k++) {
        const size_t element = h->element[k], vector = element / (size_t)v->in_each;
        const size_t first = vector * (size_t)v->in_each;
        const double factor = v->weight[vector] * v->value[element];
        for (size_t e = first; e < first + (size_t)v->count[vector]; e++) {
            const int column = v->place[e] - m->first_column;
            if (v->place[e] < m->first_column || v->place[e] >= m->end_column)
                continue;
            if (r->row_of_column[column] != row + 1) {
                r->row_of_column[column] = row + 1;
                r->columns[r->count++] = column;
                r->sum[column] = 0.0;
            }
            r->sum[column] += factor * v->value[e];
        }
    }
}

static int in_order(const void *one, const void *other)
{
    return *(const int *)one - *(const int *)other;
}

demand demand_of_matrix(const sparse_matrix *m, int order, int nonzeros)
{
    const double n = order, in_each = nonzeros + 1.0;
    const double rows = m->end_row - m->first_row, columns = m->end_column - m->first_column;
    const double vectors = n * (in_each * (sizeof(int) + sizeof(double)) + 2 * sizeof(int) +
                                sizeof(double));
    const double of_rows = rows * in_each * sizeof(size_t) + 2 * rows * sizeof(size_t);
    const double part = rows / n * columns / n * n * in_each * in_each;
    return (demand){vectors + of_rows + part * (sizeof(int) + sizeof(double)), columns};
}

void make_matrix(const program_description *program, sparse_matrix *m, int order, int nonzeros,
                 double smallest_eigenvalue, double shift)
{
    const size_t rows = (size_t)(m->end_row - m->first_row);
    const size_t columns = (size_t)(m->end_column - m->first_column);
    random_vectors v = draw_vectors(program, order, nonzeros, smallest_eigenvalue);
    holders h = find_holders(program, &v, m);
    m->start = reserve(program, rows + 1, sizeof *m->start);
    row_sum r = {reserve(program, columns, sizeof *r.columns), 0, NULL,
                 reserve(program, columns, sizeof *r.sum)};
    /* First their number, then the elements. */
    for (int pass = 0; pass < 2; pass++) {
        r.row_of_column = reserve(program, columns, sizeof *r.row_of_column);
        size_t next = 0;
        for (int row = m->first_row; row < m->end_row; row++) {
            add_row(&r, &v, &h, m, row);
            const int count = r.count;
            if (pass == 1) {
                qsort(r.columns, (size_t)count, sizeof *r.columns, in_order);
                for (int i = 0; i < count; i++) {
                    const int column = r.columns[i];
                    const int diagonal = column + m->first_column == row;
                    m->column[next + (size_t)i] = column;
                    m->value[next + (size_t)i] =
                        r.sum[column] + (diagonal ? smallest_eigenvalue - shift : 0.0);
                }
            }
            next += (size_t)count;
            m->start[row - m->first_row + 1] = next;
        }
        free(r.row_of_column);
        if (pass == 0) {
            m->column = reserve_huge(program, next, sizeof *m->column);
            m->value = reserve_huge(program, next, sizeof *m->value);
        }
    }
    free(r.columns);
    free(r.sum);
    free(h.start);
    free(h.element);
    free_vectors(&v);
}

void multiply(const sparse_matrix *m, const double *restrict vector, double *restrict product)
{
    const int rows = m->end_row - m->first_row;
    const double *restrict value = m->value;
    const int *restrict column = m->column;
    for (int row = 0; row < rows; row++) {
        const size_t end = m->start[row + 1];
        size_t k = m->start[row];
        /* Four sums, since an addition takes longer than the next one has to wait for. */
        double sum[4] = {0.0, 0.0, 0.0, 0.0};
        for (; k + 4 <= end; k += 4)
            for (size_t i = 0; i < 4; i++)
                sum[i] += value[k + i] * vector[column[k + i]];
        for (; k < end; k++)
            sum[0] += value[k] * vector[column[k]];
        product[row] = (sum[0] + sum[1]) + (sum[2] + sum[3]);
    }
}

void free_matrix(sparse_matrix *m)
{
    free(m->start);
    free(m->column);
    free(m->value);
}
