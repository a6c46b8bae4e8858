"""The command line: `mneme`. One file for each group of commands."""
