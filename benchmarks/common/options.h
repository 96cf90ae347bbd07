/* The options of a program as a table: parsing, --help and the header's parameters follow from it. */
#ifndef WYEAST_OPTIONS_H
#define WYEAST_OPTIONS_H

#include <stdio.h>

#include "arguments.h"

/* Some of a table's names, in the order given. */
typedef struct {
    const char **names;
    size_t count;
} choice_list;

typedef enum {
    OPTION_FLAG,     /* int: 0, or 1 where the option is given */
    OPTION_NUMBER,   /* long long between least and most */
    OPTION_FRACTION, /* double from 0 to most */
    OPTION_SIZES,    /* size_list; the option may be repeated */
    OPTION_CHOICE,   /* const char *, one of names */
    OPTION_CHOICES,  /* choice_list, any of names, or all; the option may be repeated */
    OPTION_TEXT,     /* const char * */
    OPTION_TEXTS,    /* choice_list, in the order given; the option may be repeated */
} option_kind;

typedef struct {
    const char *name; /* Without dashes. */
    option_kind kind;
    void *value;
    const char *initial; /* What is parsed where the option is not given; NULL: the value stays. */
    const char *help;
    long long least, most;
    const char *const *names; /* Ended by NULL. */
} option;

typedef struct {
    const char *name;
    const char *purpose; /* The text of --help before the options. */
    const char *example; /* A whole command line. */
    const option *options;
    size_t option_count;
} program_description;

typedef enum { ASKED_RUN, ASKED_HELP, ASKED_VERSION } asked_for;

/* Parse a command line. Returns 0, or -1 with a sentence. */
int parse_options(const program_description *program, int argc, char **argv, asked_for *asked,
                  complaint *about);

void print_help(FILE *out, const program_description *program);

/* Return the JSON object of all parameters as used, to be freed; NULL where memory ran out. */
char *parameters_of(const program_description *program);

void free_options(const program_description *program);

/* What follows is for programs of MPI, and in mpi_program.c; what stands above needs none. */

/* Initialize MPI and parse; help, version and bad arguments end the program on all ranks. */
void begin_program(const program_description *program, int *argc, char ***argv);

/* The same for a program whose threads all call MPI. Returns whether this MPI lets them. */
int begin_program_of_threads(const program_description *program, int *argc, char ***argv);

/* Write the header with the parameters; ends the program where memory ran out. Collective. */
void begin_output(const program_description *program);

/* Write the end record, free the options, finalize MPI and exit. Every rank calls it. */
void end_program(const program_description *program, size_t results) __attribute__((noreturn));

#endif
