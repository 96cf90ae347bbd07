#include "shared_file.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../common/leaving.h"

#define LONGEST_PATH 4096

#if HAS_FILES
static void demand(const shared_file *file, int code, const char *what)
{
    if (code == MPI_SUCCESS)
        return;
    char reason[MPI_MAX_ERROR_STRING], sentence[MPI_MAX_ERROR_STRING + 200];
    int length = 0;
    MPI_Error_string(code, reason, &length);
    /* Some say more in further lines, about where they found out. */
    length = (int)strcspn(reason, "\n");
    snprintf(sentence, sizeof sentence, "%s: %.*s", what, length, reason);
    leave_at_once(file->program, sentence);
}

void open_file(shared_file *file, const char *folder)
{
    char path[LONGEST_PATH + 40];
    long number = (long)getpid();
    MPI_Bcast(&number, 1, MPI_LONG, 0, MPI_COMM_WORLD);
    snprintf(path, sizeof path, "%.*s/wyeast-file-%ld", LONGEST_PATH, folder, number);
    const int mode = MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE;
    const int code = MPI_File_open(MPI_COMM_WORLD, path, mode, MPI_INFO_NULL, &file->handle);
    demand(file, code, path);
}

void close_file(shared_file *file)
{
    demand(file, MPI_File_close(&file->handle), "MPI_File_close");
}

/* Of every row of blocks, one for each rank, a rank has the block with its number. */
static MPI_Datatype type_of_row(const shared_file *file, int of_rank)
{
    MPI_Datatype type;
    int sizes[1] = {file->ranks * FILE_BLOCK}, own[1] = {FILE_BLOCK};
    int starts[1] = {of_rank * FILE_BLOCK};
    MPI_Type_create_subarray(1, sizes, own, starts, MPI_ORDER_C, MPI_BYTE, &type);
    MPI_Type_commit(&type);
    return type;
}

void look_at_part(shared_file *file, int of_rank)
{
    char representation[] = "native";
    MPI_Datatype row = file->interleaved ? type_of_row(file, of_rank) : MPI_BYTE;
    const MPI_Offset start = file->interleaved ? 0 : (MPI_Offset)file->bytes * of_rank;
    demand(file, MPI_File_set_view(file->handle, start, MPI_BYTE, row, representation,
                                   MPI_INFO_NULL), "MPI_File_set_view");
    if (file->interleaved)
        MPI_Type_free(&row);
}

void write_part(shared_file *file, const unsigned char *data, int together)
{
    const int bytes = (int)file->bytes;
    /* MPI-2's functions write from what they may not change by the standard alone. */
    void *from = (void *)(size_t)data;
    if (together)
        demand(file, MPI_File_write_at_all(file->handle, 0, from, bytes, MPI_BYTE,
                                           MPI_STATUS_IGNORE), "MPI_File_write_at_all");
    else
        demand(file, MPI_File_write_at(file->handle, 0, from, bytes, MPI_BYTE, MPI_STATUS_IGNORE),
               "MPI_File_write_at");
}

void read_part(shared_file *file, unsigned char *data, int together)
{
    const int bytes = (int)file->bytes;
    if (together)
        demand(file, MPI_File_read_at_all(file->handle, 0, data, bytes, MPI_BYTE,
                                          MPI_STATUS_IGNORE), "MPI_File_read_at_all");
    else
        demand(file, MPI_File_read_at(file->handle, 0, data, bytes, MPI_BYTE, MPI_STATUS_IGNORE),
               "MPI_File_read_at");
}

void synchronise_file(shared_file *file)
{
    demand(file, MPI_File_sync(file->handle), "MPI_File_sync");
}
#else
void open_file(shared_file *file, const char *folder)
{
    (void)file;
    (void)folder;
}

void close_file(shared_file *file)
{
    (void)file;
}

void look_at_part(shared_file *file, int of_rank)
{
    (void)file;
    (void)of_rank;
}

void write_part(shared_file *file, const unsigned char *data, int together)
{
    (void)file;
    (void)data;
    (void)together;
}

void read_part(shared_file *file, unsigned char *data, int together)
{
    (void)file;
    (void)data;
    (void)together;
}

void synchronise_file(shared_file *file)
{
    (void)file;
}
#endif
