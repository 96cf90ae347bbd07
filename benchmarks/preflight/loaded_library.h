/* Which library of MPI the loader has given this process. */
#ifndef WYEAST_LOADED_LIBRARY_H
#define WYEAST_LOADED_LIBRARY_H

#include <stddef.h>

/* Write the loader's path of the file that MPI_Init was taken from: two builds of one version
 * say the same of themselves, and only their places tell them apart. It is empty where the loader
 * does not know, as in a program that MPI is linked into (no library is there then), and where the
 * path is too long. */
void find_mpi_library(char *path, size_t size);

#endif
