"""What a launch and a campaign leave behind: the files, their format, and what is possible."""
