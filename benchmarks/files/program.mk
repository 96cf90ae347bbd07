PROGRAMS += files
files_OBJECTS := files/files files/shared_file $(MEASURING)
