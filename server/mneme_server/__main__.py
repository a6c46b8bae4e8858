"""`python -m mneme_server`: the command `mneme-server`."""

import sys

from mneme_server.commands.entry import main

if __name__ == "__main__":
    sys.exit(main())
