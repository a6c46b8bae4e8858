"""What tools answer in structured form.

The models are filled from the client's plain values (`mneme.to_dict`), whose names they share, and
leave out what is empty.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from mneme_mcp.schemas import tidy
from mneme_mcp.spelling import to_camel

_EMPTY: tuple[Any, ...] = (None, "", [], {})

Name = Annotated[str, BeforeValidator(lambda value: value or "")]
"""An enum's value; empty where the API says nothing."""


class Output(BaseModel):
    """A part of an answer, or all of it."""

    model_config = ConfigDict(populate_by_name=True, extra="ignore")

    api_names: ClassVar[Mapping[str, str]] = {}
    """The API's names of fields, where they differ from the answer's."""

    @model_validator(mode="before")
    @classmethod
    def _named_as_fields(cls, given: Any) -> Any:
        if not isinstance(given, Mapping) or not cls.api_names:
            return given
        return {cls.api_names.get(name, name): value for name, value in given.items()}

    def dump(self) -> dict[str, Any]:
        """As JSON holds it; what is empty is left out unless the schema requires it."""
        dumped = {}
        for name, info in type(self).model_fields.items():
            value = _dumped(getattr(self, name))
            if info.is_required() or value not in _EMPTY:
                dumped[info.alias or name] = value
        return dumped

    @classmethod
    def schema_for_hosts(cls) -> dict[str, Any]:
        """The output schema; it holds an error as well, since some hosts check those, too.

        So it requires nothing: an answer lacks the error, an error lacks the answer, and hosts
        refuse alternatives at the root.
        """
        schema = tidy(cls.model_json_schema(by_alias=True, mode="validation"))
        schema.pop("required", None)
        schema["properties"]["error"] = {"type": "object"}
        return schema


class CamelOutput(Output):
    """An answer with camelCase names: of the `agentlens_*` and `reflection_*` tools."""

    model_config = ConfigDict(alias_generator=to_camel)


class SnakeOutput(Output):
    """An answer with snake_case names: of the other tools."""


Free = Annotated[dict[str, Any], Field(description="Free JSON.")]


def _dumped(value: Any) -> Any:
    if isinstance(value, Output):
        return value.dump()
    return [_dumped(item) for item in value] if isinstance(value, list) else value
