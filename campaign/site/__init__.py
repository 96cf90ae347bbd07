"""The two commands about a site: write one, verify one."""
