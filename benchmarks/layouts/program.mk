PROGRAMS += layouts
layouts_OBJECTS := layouts/layouts layouts/layout $(MEASURING)
