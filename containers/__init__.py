"""Apptainer, the images with one MPI implementation each, and what goes into them."""
