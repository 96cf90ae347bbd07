"""Images that travel, and whether they can be built again."""
