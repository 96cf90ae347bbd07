"""References: proposed from campaigns, and missed by them."""
