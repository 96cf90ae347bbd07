"""Which of a campaign's nodes and links are slow or unstable, and what each node does by itself."""
