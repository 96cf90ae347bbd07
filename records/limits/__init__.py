"""What no measurement can beat: links, clocks, memory, physics."""
