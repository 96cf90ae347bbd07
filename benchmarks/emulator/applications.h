/* The emulated applications, and which ranks of the world each has. */
#ifndef WYEAST_APPLICATIONS_H
#define WYEAST_APPLICATIONS_H

#include <stddef.h>

#include "../common/options.h"
#include "graph.h"

typedef struct {
    const char *text; /* As --application has it. */
    graph graph;
    int *world_ranks; /* By the application's own rank. */
} application;

typedef struct {
    application *all;
    size_t count;
} application_list;

/* How ranks are dealt to the applications, ended by NULL. */
extern const char *const placement_names[];

/* Make the applications of --application, with the same result on every rank. Collective over
 * MPI_COMM_WORLD, for rank 0 reads the files. Returns 0, or -1 with a sentence. */
int make_applications(const choice_list *texts, const char *placement, size_t message_bytes,
                      double compute_mean, application_list *made, complaint *about);

void free_applications(application_list *list);

#endif
