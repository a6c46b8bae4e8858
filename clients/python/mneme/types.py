"""The types of arguments and answers, in plain Python values, for annotations of your own.

Answers are classes (`RecallResult`), the nested messages of requests are dicts (`NewEventFields`),
enums are names (`SeverityChoice`), and so are the known ones of names that are open
(`EventTypeName`). The wire's own messages are in `mneme.messages`.
"""

from mneme._core.uploading import Recorded  # noqa: F401
from mneme._generated.answers import *  # noqa: F403
from mneme._generated.choices import *  # noqa: F403
from mneme._generated.fields import *  # noqa: F403
