"""The messages and enums of the API as the wire has them: `from mneme.messages import NewEvent`.

Every argument takes them in place of plain values, and every answer has its own as `raw`.
"""

from mneme._generated.messages import *  # noqa: F403
