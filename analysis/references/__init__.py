"""References: proposed from campaigns, and missed by campaigns."""
