"""What a cosine means under each embedding model.

The terms of the ranking were made for the default model, under which unrelated texts lie around 0.2
and answers around 0.6. Another model's cosines are brought to that scale; what is shown as
similarity stays the plain cosine.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mneme_server.features.recall.ranking import Floats

E5 = "multilingual-e5-small-q4"


@dataclass(frozen=True, slots=True)
class Scale:
    """Where a model's cosines lie: the default model's are slope · (cosine - zero)."""

    zero: float = 0.0
    slope: float = 1.0

    def usual(self, cosines: Floats) -> Floats:
        """Return the default model's cosines that say as much; NaN stays."""
        if self == USUAL:
            return cosines
        scaled: Floats = np.clip((cosines - self.zero) * self.slope, -1.0, 1.0)
        return scaled

    def of_usual(self, cosine: float) -> float:
        """Return this model's cosine that says as much as one of the default model."""
        return self.zero + cosine / self.slope


USUAL = Scale()
_SCALES = {E5: Scale(zero=0.722, slope=4.25)}
"""So that the cosines of all questions with all texts have the default model's mean and spread;
measured on chats."""


def scale_of(model_id: str) -> Scale:
    """Return a model's scale; of one that was not measured, the default model's."""
    return _SCALES.get(model_id, USUAL)
