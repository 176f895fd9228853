"""`python -m northwind`: the company as one process."""

import sys

from northwind.server import main

sys.exit(main(sys.argv[1:]))
