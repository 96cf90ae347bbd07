/* Systems of equations along the lines of a multi-partition's blocks, several lines side by side in
 * a vector: what SP and BT solve in each direction. */
#ifndef WYEAST_LINES_H
#define WYEAST_LINES_H

#include <string.h>

#include "for_this_processor.h"
#include "multi_partition.h"

/* Lines that are solved side by side, and a number of each. */
enum { LANES = 8 };
typedef double lanes __attribute__((vector_size(LANES * sizeof(double))));

/* Lines of a block next to each other, of which the first `count` are real. */
typedef struct {
    const flow *f;
    int direction, count;
    ptrdiff_t start, derived_start;   /* The first line's point 0. */
    stride along, across;             /* To the next point of a line, and to the next line. */
} bundle;

PART_OF_IT void load(lanes *to, const double *from, ptrdiff_t step, int count)
{
    double each[LANES] = {0};
    for (int i = 0; i < count; i++)
        each[i] = from[i * step];
    memcpy(to, each, sizeof each);
}

PART_OF_IT void store(const lanes *from, double *to, ptrdiff_t step, int count)
{
    double each[LANES];
    memcpy(each, from, sizeof each);
    for (int i = 0; i < count; i++)
        to[i * step] = each[i];
}

/* What is derived from u, or the five numbers of the residual, at a point of all lines: `order` names
 * the rows. Lines that are neighbours in x are neighbouring numbers. */
PART_OF_IT void load_all(lanes *to, const int *order, int kinds, const double *from, ptrdiff_t row,
                         ptrdiff_t step, int count)
{
    for (int k = 0; k < kinds; k++) {
        if (step == 1 && count == LANES)
            memcpy(&to[k], from + order[k] * row, sizeof *to);
        else
            load(&to[k], from + order[k] * row, step, count);
    }
}

PART_OF_IT void store_all(const lanes *from, const int *order, int kinds, double *to, ptrdiff_t row,
                          ptrdiff_t step, int count)
{
    for (int k = 0; k < kinds; k++) {
        if (step == 1 && count == LANES)
            memcpy(to + order[k] * row, &from[k], sizeof *from);
        else
            store(&from[k], to + order[k] * row, step, count);
    }
}

/* How one kind of system is solved: how many numbers a line hands on to the next block of its
 * direction, and back, and how many it keeps of each point until it is solved backwards. */
typedef struct {
    int handed_on, handed_back, kept;
    /* Eliminate from the lines' first points to their last, beginning with what was handed to them
     * and ending with what they hand on; then from the last to the first. */
    void (*forwards)(const bundle *b, double time_step, lanes *kept, lanes *handed);
    void (*backwards)(const bundle *b, const lanes *kept, lanes *handed);
} line_solver;

typedef struct {
    lanes *kept;
    double *sent, *received;
} line_room;

/* What a rank asks for with its blocks, which are described, their borders and this room. */
demand demand_of_lines(const multi_partition *p, const int points[3], const line_solver *solver);

line_room make_line_room(const program_description *program, const multi_partition *p,
                         const line_solver *solver);
void free_line_room(const line_room *room);

/* Solve all lines in a direction; the residual becomes the solution. */
void solve_lines(const multi_partition *p, int direction, const line_solver *solver,
                 double time_step, const line_room *room);

#endif
