/* Data that lie apart in memory: where, how MPI describes them, and how a program copies them itself. */
#ifndef WYEAST_DATA_LAYOUT_H
#define WYEAST_DATA_LAYOUT_H

#include <mpi.h>
#include <stddef.h>

/* All layouts have data of any multiple of so many bytes. */
#define LAYOUT_UNIT 128

typedef struct layout layout;

typedef struct {
    const char *name;
    size_t (*extent)(const layout *of); /* From the first byte of the data to past the last. */
    /* Where the data from byte `data` on lie, and how many lie there in a row. */
    size_t (*place)(const layout *of, size_t data, size_t *in_a_row);
    /* How many of the type hold all data. */
    int (*describe)(const layout *of, MPI_Datatype *type);
    /* One after the other into memory without gaps, and back. */
    void (*gather)(const layout *of, double *to, const unsigned char *from);
    void (*spread)(const layout *of, unsigned char *to, const double *from);
} layout_kind;

struct layout {
    const layout_kind *kind;
    size_t bytes; /* Of data. */
    MPI_Datatype type;
    int count;
    /* Of the blocks of `indexed`, in doubles: the last is how many data are in those before. */
    int *lengths, *starts, *before;
    size_t blocks;
};

extern const char *const layout_names[];

/* Lay data out and describe them to MPI. Returns 0, or -1 where memory ran out. */
int make_layout(layout *made, const char *name, size_t bytes);
void free_layout(layout *of);

#endif
