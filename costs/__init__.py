"""What the platform itself costs: the same programs inside images and outside."""
