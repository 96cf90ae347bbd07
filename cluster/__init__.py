"""A Slurm cluster in a box: nodes, network and filesystem in namespaces of this machine."""
