"""Transcripts as other tools write them, made by a seed, and a count of what they hold.

`written` writes sessions in each format; `walked` counts arguments, results and errors in the files
by walking their JSON. Neither uses anything of Mneme, so that what they agree on about an import is
not its own opinion.
"""
