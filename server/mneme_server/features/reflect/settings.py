"""The settings of analyses: the table of what tokens cost, MNEME_MODEL_PRICES.

There is no table by default; prices change, and a figure made from an outdated one would look like
a measurement.
"""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field

from mneme_server.engine.settings import none_if_empty

_PER = 1_000_000
_VERSION = re.compile(r"[-@:](?:\d{4}-?\d{2}-?\d{2}|latest)$")


def _check_prices(prices: str | None) -> str | None:
    read_prices(prices)
    return prices


class AnalysisSettings(BaseModel):
    """What analyses are told."""

    model_prices: Annotated[
        str | None, BeforeValidator(none_if_empty), AfterValidator(_check_prices)
    ] = Field(
        None,
        description="what tokens cost, for events without a cost: the path of a TOML or JSON"
        ' file, or JSON itself, {"MODEL": {"input": 2.5, "output": 10}} in US dollars per million'
        " tokens",
    )


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars a token."""

    input: float
    output: float


@dataclass(frozen=True, slots=True)
class PriceTable:
    """Prices by model."""

    prices: Mapping[str, Price] = field(default_factory=dict)

    def price_of(self, model: str) -> Price | None:
        """Return a model's price; a dated version ("gpt-4o-2024-08-06") without a price of its own
        has that of its model."""
        return self.prices.get(model) or self.prices.get(_VERSION.sub("", model))


def read_prices(setting: str | None) -> PriceTable:
    """Read a table: a JSON object, or the path of a JSON or TOML file, that gives for each model
    `input` and `output` in US dollars a million tokens.

    Raises:
        ValueError: it cannot be read; the message says why.
    """
    if not setting:
        return PriceTable()
    return PriceTable({model: _price(model, value) for model, value in _loaded(setting).items()})


def _loaded(setting: str) -> dict[str, Any]:
    try:
        if setting.lstrip().startswith("{"):
            loaded = json.loads(setting)
        else:
            path = Path(setting)
            text = path.read_text(encoding="utf-8")
            loaded = tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
    except OSError as error:
        raise ValueError(f"cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, ValueError, RecursionError) as error:
        raise ValueError(f"is neither JSON nor the path of a JSON or TOML file: {error}") from None
    if not isinstance(loaded, dict):
        raise ValueError('is not a table; give {"MODEL": {"input": 2.5, "output": 10}}')
    return loaded


def _price(model: str, value: Any) -> Price:
    if not isinstance(value, dict) or not {"input", "output"} >= value.keys() or not value:
        raise ValueError(f"{model}: give input and output, in US dollars per million tokens")
    amounts = [value.get(name, 0) for name in ("input", "output")]
    for amount in amounts:
        is_number = isinstance(amount, int | float) and not isinstance(amount, bool)
        if not is_number or not math.isfinite(amount) or amount < 0:
            raise ValueError(f"{model}: {amount!r} is not a price in US dollars per million tokens")
    return Price(amounts[0] / _PER, amounts[1] / _PER)
