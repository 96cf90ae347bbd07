PROGRAMS += passive_target
passive_target_OBJECTS := $(patsubst %,passive_target/%,passive_target accesses windows) \
    common/computation common/end_of_access $(MEASURING)
