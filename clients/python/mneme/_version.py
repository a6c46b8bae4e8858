"""The version of all of Mneme."""

__version__ = "0.1.0"
