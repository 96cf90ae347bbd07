PROGRAMS += threads
threads_OBJECTS := threads/threads threads/team threads/messages $(MEASURING)
$(BUILD)/bin/threads: LDLIBS += -pthread
