"""The site of the documentation: the pages of the repository, and pages drawn from the code."""
