/* How a collective operation is proved right before it is timed: as communication.h asks for it. */
#ifndef WYEAST_PROOF_H
#define WYEAST_PROOF_H

#include "../common/arguments.h"

/* Put what is sent into the buffers of a `call`, and something else into those that receive. */
void prepare_collective(void *context, unsigned long long n);

/* Compare what a run has brought, or prove that a barrier is one. Returns the bytes that were other
 * ranks', or -1 with a sentence. */
long long verify_collective(void *context, unsigned long long n, complaint *about);

#endif
