#include "library_variables.h"

#include <ctype.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../common/record_pieces.h"
#include "../common/standard.h"

#define LONGEST_NAME 256
#define LONGEST_VALUE 256

#if HAS_MPI3
/* What is part of a name that says how messages go, and such names as a whole. */
static const char *const parts[] = {"eager", "rndv", "netmod", "_tls", "cell_size",
                                    "single_copy", "selection", NULL};
static const char *const names[] = {"pml", "btl", "mtl", "coll", "osc", "mpir_cvar_ch4_shm", NULL};

static int ends_with(const char *name, const char *end)
{
    const size_t length = strlen(name);
    return length >= strlen(end) && strcmp(name + length - strlen(end), end) == 0;
}

static int is_of_messages(const char *name)
{
    char lower[LONGEST_NAME];
    size_t i = 0;
    for (; name[i] && i + 1 < sizeof lower; i++)
        lower[i] = (char)tolower((unsigned char)name[i]);
    lower[i] = '\0';
    for (i = 0; names[i]; i++)
        if (strcmp(lower, names[i]) == 0)
            return 1;
    for (i = 0; parts[i]; i++)
        if (strstr(lower, parts[i]))
            return 1;
    return ends_with(lower, "algorithm"); /* Not how many there are, and how wide. */
}

/* A whole number of a type, as far as it is one. Returns 0, or -1. */
static int number_of(MPI_Datatype type, const void *from, long long *number)
{
    int32_t narrow;
    int bytes;
    MPI_Type_size(type, &bytes);
    if (type == MPI_INT || type == MPI_UNSIGNED) {
        memcpy(&narrow, from, sizeof narrow);
        *number = type == MPI_INT ? narrow : (long long)(uint32_t)narrow;
        return 0;
    }
    if (bytes != sizeof *number || type == MPI_DOUBLE)
        return -1;
    memcpy(number, from, sizeof *number);
    return 0;
}

/* What a number of an enumeration is called, where it has a name. */
static int name_of(MPI_T_enum known, long long number, char name[LONGEST_VALUE])
{
    int count = 0, value, length = LONGEST_VALUE;
    char ignored[LONGEST_VALUE];
    if (known == MPI_T_ENUM_NULL || MPI_T_enum_get_info(known, &count, ignored, &length))
        return -1;
    for (int i = 0; i < count; i++) {
        length = LONGEST_VALUE;
        if (MPI_T_enum_get_item(known, i, &value, name, &length) == MPI_SUCCESS && value == number)
            return 0;
    }
    return -1;
}

/* The value of a control variable as text. Returns 0, or -1 where it has none that is a text or number. */
static int read_control(int index, MPI_Datatype type, MPI_T_enum known, char value[LONGEST_VALUE])
{
    MPI_T_cvar_handle handle;
    int count = 0, status = -1;
    long long number;
    if (MPI_T_cvar_handle_alloc(index, NULL, &handle, &count))
        return -1;
    /* As many as it says, whatever they are. */
    char *memory = calloc((size_t)count + 1, sizeof(long long));
    if (memory && count > 0 && MPI_T_cvar_read(handle, memory) == MPI_SUCCESS) {
        if (type == MPI_CHAR) {
            snprintf(value, LONGEST_VALUE, "%.*s", count, memory);
            status = 0;
        } else if (count == 1 && number_of(type, memory, &number) == 0) {
            if (name_of(known, number, value))
                snprintf(value, LONGEST_VALUE, "%lld", number);
            status = 0;
        }
    }
    free(memory);
    MPI_T_cvar_handle_free(&handle);
    return status;
}

/* What says nothing: no text, or an algorithm that is left to the library. */
static int says_nothing(const char *name, const char *value)
{
    static const char *const chosen_by_library[] = {"0", "auto", "ignore", "default", NULL};
    for (size_t i = 0; chosen_by_library[i]; i++)
        if (strcmp(value, chosen_by_library[i]) == 0)
            return ends_with(name, "algorithm") || ends_with(name, "ALGORITHM");
    return !value[0];
}

static size_t print_controls(void)
{
    int count = 0;
    size_t printed = 0;
    MPI_T_cvar_get_num(&count);
    fputs("{\"record\":\"result\",\"operation\":\"control_variables\",\"variables\":{", stdout);
    for (int i = 0; i < count; i++) {
        char name[LONGEST_NAME], value[LONGEST_VALUE];
        int name_length = sizeof name, described = 0, verbosity, bind, scope;
        MPI_Datatype type;
        MPI_T_enum known;
        if (MPI_T_cvar_get_info(i, name, &name_length, &verbosity, &type, &known, NULL, &described,
                                &bind, &scope) ||
            !is_of_messages(name) || bind != MPI_T_BIND_NO_OBJECT ||
            read_control(i, type, known, value) || says_nothing(name, value))
            continue;
        fputs(printed++ ? "," : "", stdout);
        print_string(stdout, name);
        fputs(":", stdout);
        print_string(stdout, value);
    }
    fputs("}}\n", stdout);
    return 1;
}

typedef struct {
    char name[LONGEST_NAME];
    MPI_Datatype type;
    MPI_T_pvar_handle handle;
    long long before;
} counter;

struct library_counters {
    MPI_T_pvar_session session;
    size_t count;
    counter *each;
};

static int read_counter(const library_counters *all, const counter *one, long long *number)
{
    long long memory[1] = {0};
    return MPI_T_pvar_read(all->session, one->handle, memory) ||
           number_of(one->type, memory, number);
}

/* Open MPI's components for PSM ask their device when a counter of theirs is allocated, which is a
 * segmentation fault where it is not there, as with Debian's Open MPI on most machines. */
static int needs_its_device(const char *name)
{
    static const char of_psm[] = "mtl_psm";
    return strncmp(name, of_psm, sizeof of_psm - 1) == 0;
}

/* Have a counter read from now on, where it is one number of the whole library. */
static void add_counter(library_counters *all, int index)
{
    counter *next = &all->each[all->count];
    int length = sizeof next->name, described = 0, verbosity, class, bind, fixed, always, atomic;
    int count = 0;
    MPI_T_enum known;
    if (MPI_T_pvar_get_info(index, next->name, &length, &verbosity, &class, &next->type, &known,
                            NULL, &described, &bind, &fixed, &always, &atomic) ||
        bind != MPI_T_BIND_NO_OBJECT || needs_its_device(next->name) ||
        MPI_T_pvar_handle_alloc(all->session, index, NULL, &next->handle, &count))
        return;
    if (count == 1 && (always || MPI_T_pvar_start(all->session, next->handle) == MPI_SUCCESS) &&
        read_counter(all, next, &next->before) == 0)
        all->count++;
    else
        MPI_T_pvar_handle_free(all->session, &next->handle);
}

library_counters *begin_counters(void)
{
    int level, count = 0;
    if (MPI_T_init_thread(MPI_THREAD_SINGLE, &level))
        return NULL;
    library_counters *all = calloc(1, sizeof *all);
    MPI_T_pvar_get_num(&count);
    if (all)
        all->each = calloc((size_t)count + 1, sizeof *all->each);
    if (!all || !all->each || MPI_T_pvar_session_create(&all->session)) {
        free(all ? all->each : NULL);
        free(all);
        MPI_T_finalize();
        return NULL;
    }
    for (int i = 0; i < count; i++)
        add_counter(all, i);
    return all;
}

static size_t print_counters(library_counters *all)
{
    size_t printed = 0;
    fputs("{\"record\":\"result\",\"operation\":\"performance_variables\",\"variables\":{", stdout);
    for (size_t i = 0; i < all->count; i++) {
        long long now;
        if (read_counter(all, &all->each[i], &now))
            continue;
        fputs(printed++ ? "," : "", stdout);
        print_string(stdout, all->each[i].name);
        printf(":[%lld,%lld]", all->each[i].before, now);
    }
    fputs("}}\n", stdout);
    return 1;
}

size_t print_library_variables(library_counters *all)
{
    if (!all)
        return 0;
    const size_t printed = print_controls() + print_counters(all);
    for (size_t i = 0; i < all->count; i++)
        MPI_T_pvar_handle_free(all->session, &all->each[i].handle);
    MPI_T_pvar_session_free(&all->session);
    MPI_T_finalize();
    free(all->each);
    free(all);
    return printed;
}
#else
library_counters *begin_counters(void)
{
    return NULL;
}

size_t print_library_variables(library_counters *counters)
{
    (void)counters;
    return 0;
}
#endif
