"""`python -m benchmarks`: see `benchmarks.bench`."""

import sys

from benchmarks.bench import main

if __name__ == "__main__":
    sys.exit(main())
