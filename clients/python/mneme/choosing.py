"""Choosing by what worked: a learned policy picks one of several ways and hears what came of it."""

from mneme._async.choosing import AsyncChoice, AsyncChooser
from mneme._choice import ALGORITHM, Option
from mneme._sync.choosing import Choice, Chooser

__all__ = ["ALGORITHM", "AsyncChoice", "AsyncChooser", "Choice", "Chooser", "Option"]
