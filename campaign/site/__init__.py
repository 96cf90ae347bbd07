"""The two commands about a site: write one, prove one."""
