#include "stencils.h"

#include "for_this_processor.h"

/* A: -8/3 at the point, nothing at faces, 1/6 at edges, 1/12 at corners. */
#define A_POINT (-8.0 / 3.0)
#define A_EDGE (1.0 / 6.0)
#define A_CORNER (1.0 / 12.0)

/* Of a row and the eight around it: at each place the sum of the four rows that share a face with
 * it, and of the four that share an edge. */
PART_OF_IT void sum_rows(const cube *c, const double *restrict middle, double *restrict faces,
                         double *restrict edges)
{
    const double *restrict below = middle - c->plane, *restrict above = middle + c->plane;
    const long row = (long)c->row;
    for (long i = 0; i < row; i++) {
        faces[i] = (middle[i - row] + middle[i + row]) + (below[i] + above[i]);
        edges[i] = (below[i - row] + below[i + row]) + (above[i - row] + above[i + row]);
    }
}

FOR_THIS_PROCESSOR
void subtract_operator(const cube *c, const double *u, const double *right, double *residual,
                       double *lines)
{
    double *restrict faces = lines, *restrict edges = lines + c->row;
    for (int z = 1; z <= c->own[2]; z++)
        for (int y = 1; y <= c->own[1]; y++) {
            const size_t start = (size_t)z * c->plane + (size_t)y * c->row;
            const double *restrict middle = u + start;
            sum_rows(c, middle, faces, edges);
            const double *from = right + start;
            double *to = residual + start;
#pragma GCC ivdep
            for (int x = 1; x <= c->own[0]; x++)
                to[x] = from[x] - A_POINT * middle[x] -
                        A_EDGE * (edges[x] + faces[x - 1] + faces[x + 1]) -
                        A_CORNER * (edges[x - 1] + edges[x + 1]);
        }
}

FOR_THIS_PROCESSOR
void smooth(const cube *c, const double smoother[4], const double *residual, double *u,
            double *lines)
{
    const double point = smoother[0], face = smoother[1], edge = smoother[2];
    double *restrict faces = lines, *restrict edges = lines + c->row;
    for (int z = 1; z <= c->own[2]; z++)
        for (int y = 1; y <= c->own[1]; y++) {
            const size_t start = (size_t)z * c->plane + (size_t)y * c->row;
            const double *restrict middle = residual + start;
            sum_rows(c, middle, faces, edges);
            double *restrict to = u + start;
            /* The corners' coefficient is 0 in every class. */
            for (int x = 1; x <= c->own[0]; x++)
                to[x] += point * middle[x] + face * (middle[x - 1] + middle[x + 1] + faces[x]) +
                         edge * (edges[x] + faces[x - 1] + faces[x + 1]);
        }
}

FOR_THIS_PROCESSOR
void restrict_row(const cube *fine, const double *residual, int points, int y, int z,
                  double *coarse, double *lines)
{
    double *restrict faces = lines, *restrict edges = lines + fine->row;
    const double *restrict middle =
        residual + 2 * (size_t)z * fine->plane + 2 * (size_t)y * fine->row;
    sum_rows(fine, middle, faces, edges);
    for (int x = 0; x < points; x++) {
        const int at = 2 * x + 2;
        coarse[x] = 0.5 * middle[at] + 0.25 * (middle[at - 1] + middle[at + 1] + faces[at]) +
                    0.125 * (faces[at - 1] + faces[at + 1] + edges[at]) +
                    0.0625 * (edges[at - 1] + edges[at + 1]);
    }
}

FOR_THIS_PROCESSOR
void interpolate(const cube *fine, double *u, const cube *coarse, const int first[DIMENSIONS],
                 const double *values, double *lines)
{
    double *restrict line = lines;
    const int pairs = fine->own[0] / 2 + 1;
    for (int z = 0; z <= fine->own[2] + 1; z++)
        for (int y = 0; y <= fine->own[1] + 1; y++) {
            const double *restrict from = values +
                                          (size_t)(first[2] + z / 2) * coarse->plane +
                                          (size_t)(first[1] + y / 2) * coarse->row + first[0];
            /* Where a coordinate is odd there, the point lies between two coarse ones. */
            const size_t up = z % 2 ? coarse->plane : 0, along = y % 2 ? coarse->row : 0;
            for (int x = 0; x <= pairs; x++)
                line[x] = 0.25 * ((from[x] + from[(size_t)x + along]) +
                                  (from[(size_t)x + up] + from[(size_t)x + along + up]));
            double *restrict to = u + (size_t)z * fine->plane + (size_t)y * fine->row;
            for (int x = 0; x < pairs; x++) {
                to[2 * x] += line[x];
                to[2 * x + 1] += 0.5 * (line[x] + line[x + 1]);
            }
        }
}
