"""The embedding model of Mneme's server, as data: see README.md."""
