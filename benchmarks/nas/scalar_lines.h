#ifndef WYEAST_SCALAR_LINES_H
#define WYEAST_SCALAR_LINES_H

#include "lines.h"

/* Systems that couple each unknown with itself alone, up to two points away, as SP's. */
extern const line_solver scalar_lines;

/* Between the directions: from the unknowns to the waves along the first direction, from each
 * direction's waves to the next one's, and back to the unknowns (after: 0 to 3). */
void change_waves(const flow *f, int after);

#endif
