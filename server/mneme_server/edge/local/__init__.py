"""A server of one folder, for the processes of its user on this machine: `mneme.local`.

Participants start it, join it, and it ends itself when the last of them has gone.
"""
