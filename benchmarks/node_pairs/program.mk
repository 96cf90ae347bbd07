PROGRAMS += node_pairs
node_pairs_OBJECTS := node_pairs/node_pairs node_pairs/exchange node_pairs/tournament $(MEASURING)
