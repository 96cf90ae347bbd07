PROGRAMS += big_counts
big_counts_OBJECTS := big_counts/big_counts big_counts/long_messages $(MEASURING)
