"""`python -m workers`: run a worker until SIGTERM or SIGINT."""

import sys

from workers.process import main

if __name__ == "__main__":
    sys.exit(main())
