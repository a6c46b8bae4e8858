"""The commands of `mneme-server`: what the shell starts."""
