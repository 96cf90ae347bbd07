"""`python -m containers.spack`: find Spack or provide it, and print its path."""

import sys

from containers.spack.tool import main

if __name__ == "__main__":
    sys.exit(main())
