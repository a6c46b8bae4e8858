"""What the methods of the clients take, for programs that make tools, forms or options of them.

`METHODS["recall"]["limit"].most` is the greatest limit of a recall; of a method that takes a
stream, it has the fields of each request. `MESSAGES` has the fields of the messages that
parameters hold, by the messages' names.
"""

from mneme._core.parameters import Parameter
from mneme._generated.parameters import MESSAGES, METHODS

__all__ = ["MESSAGES", "METHODS", "Parameter"]
