#ifndef WYEAST_BLOCK_LINES_H
#define WYEAST_BLOCK_LINES_H

#include "lines.h"

/* Systems whose blocks couple all unknowns of neighbouring points, as BT's. */
extern const line_solver block_lines;

#endif
