/* The records of emulated applications. */
#ifndef WYEAST_REPORT_H
#define WYEAST_REPORT_H

#include "measure.h"

/* Write the result of every application, with `raw` its iterations too. Returns 0, or -1 with a
 * sentence: no memory, or bytes that are not conserved. For rank 0. */
int report_emulation(const application_list *list, const emulation_plan *plan,
                     const emulation *measured, int raw, complaint *about);

#endif
