"""The settings of analyses."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field

from mneme_server.engine.settings import none_if_empty
from mneme_server.features.reflect.prices import read_prices


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
