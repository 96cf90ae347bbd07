"""Where a library breaks its own promises: self-consistency guidelines between its operations."""
