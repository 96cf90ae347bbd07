PROGRAMS += neighbours
neighbours_OBJECTS := neighbours/neighbours neighbours/exchange neighbours/graph $(MEASURING)
