"""Brings recorded conversations and events into a server.

`reading` takes files apart into records, the files in `readers` turn the records of one format
each into planned sessions, and `recording` sends what was planned. `import_file` does it all for
one file.
"""

from mneme.importing.plan import Defaults
from mneme.importing.recording import Totals
from mneme.importing.run import Importer, import_file

__all__ = ["Defaults", "Importer", "Totals", "import_file"]
