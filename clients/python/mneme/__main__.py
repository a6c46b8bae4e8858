"""`python -m mneme` is the command line."""

from mneme.cli.main import run

if __name__ == "__main__":
    run()
