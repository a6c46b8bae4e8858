"""Options that schemas give their elements."""

from __future__ import annotations

from typing import Any


def extension(element: Any, option: Any) -> Any:
    """Return an option's value; its default where it is not set.

    Args:
        element: the descriptor of a service, an RPC or a field.
        option: the extension; the generated stubs type it as a plain field and not as what it
            extends.
    """
    return element.GetOptions().Extensions[option]
