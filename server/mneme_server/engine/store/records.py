"""Conversions of records to rows and back, made of the fields that a record and its table have."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any, TypeVar

from sqlalchemy import Row, Table

from mneme_server.common.clock import END_US
from mneme_server.common.records import Conversion, RecordField, call_of, compiled, record_fields
from mneme_server.engine.store.rows import decode_tags, encode_tags

R = TypeVar("R")
_TENANT = "tenant_id"
_TIMES = "_at"
"""How columns of times end; durations are in others."""


def row_writer(
    record: type[R],
    table: Table,
    *,
    spelled: Mapping[str, str] | None = None,
    made: Mapping[str, Callable[[R], Any]] | None = None,
    sets: Collection[str] = (),
    elsewhere: Collection[str] = (),
    besides: Collection[str] = (),
) -> Callable[[R, str], dict[str, Any]]:
    """Return what makes a tenant's row of a record: values by column, all of the table's.

    Each column is the record's field, or its property, that is spelled so.

    Args:
        record: the record's class.
        table: where it is kept.
        spelled: the columns of fields, where `RecordField.spellings` do not tell.
        made: columns that are made of the whole record.
        sets: fields that are kept sorted and without repeats.
        elsewhere: fields that are in no column of this table.
        besides: columns that are filled by who inserts the row.

    Raises:
        TypeError: a column is not filled, or a field neither in a column nor `elsewhere`; when it
            is first used.
    """
    make = partial(
        _make_writer, record, table, spelled=spelled or {}, made=made or {}, sets=frozenset(sets),
        elsewhere=frozenset(elsewhere), besides=frozenset(besides),
    )  # fmt: skip
    return Conversion(make)


def _make_writer(
    record: type[R],
    table: Table,
    *,
    spelled: Mapping[str, str],
    made: Mapping[str, Callable[[R], Any]],
    sets: Collection[str],
    elsewhere: frozenset[str],
    besides: frozenset[str],
) -> Callable[[R, str], dict[str, Any]]:
    sources = _by_column(record, table, spelled)
    known: dict[str, Any] = {"encode_tags": encode_tags, "encode_list": _encode_list}
    known |= {f"make_{column}": make for column, make in made.items()}
    values = {_TENANT: _TENANT}
    for column in [one.name for one in table.columns if one.name not in besides]:
        if column in made:
            values[column] = f"make_{column}(record)"
        elif column in sources:
            values[column] = _written(sources[column], sources[column].name in sets)
        elif isinstance(getattr(record, column, None), property):
            values[column] = f"record.{column}"
        elif column != _TENANT:
            raise TypeError(f"nothing of {record.__name__} is {table.name}.{column}")
    kept = {field.name for column, field in sources.items() if column in values} | elsewhere
    if left := record_fields(record).keys() - kept:
        raise TypeError(f"{table.name} keeps no {', '.join(sorted(left))} of {record.__name__}")
    body = f"{{{', '.join(f'{name!r}: {value}' for name, value in values.items())}}}"
    return compiled(f"row_of_{record.__name__}", f"record, {_TENANT}", body, known)


def row_reader(
    table: Table,
    record: type[R],
    *,
    spelled: Mapping[str, str] | None = None,
    parts: Mapping[str, Callable[[Any], Any]] | None = None,
) -> Callable[[Row[Any]], R]:
    """Return what makes a record of a row; fields that are in no column keep their defaults.

    It raises one of `common.stored.UNREADABLE` where the row is damaged.

    Args:
        table: where it is kept.
        record: the record's class.
        spelled: the columns of fields, where `RecordField.spellings` do not tell, and of those
            that are not the table's.
        parts: what makes a field of its column's value.

    Raises:
        TypeError: a field that has no default is in no column; when it is first used.
    """
    return Conversion(partial(_make_reader, table, record, spelled or {}, parts or {}))


def _make_reader(
    table: Table,
    record: type[R],
    spelled: Mapping[str, str],
    parts: Mapping[str, Callable[[Any], Any]],
) -> Callable[[Row[Any]], R]:
    columns = {field.name: name for name, field in _by_column(record, table, spelled).items()}
    columns |= spelled
    known: dict[str, Any] = {"Record": record, "decode_list": decode_tags, "time_of": time_of}
    known |= {f"make_{name}": make for name, make in parts.items()}
    values: dict[str, str] = {}
    for name, field in record_fields(record).items():
        value = f"row.{columns.get(name)}"
        if name in parts:
            values[name] = f"make_{name}({value})"
        elif name in columns:
            values[name] = _read(field, value, known)
        elif field.required:
            raise TypeError(f"{table.name} has no {name} of {record.__name__}")
    return compiled(f"{record.__name__}_of", "row", call_of("Record", values), known)


def _by_column(record: type, table: Table, spelled: Mapping[str, str]) -> dict[str, RecordField]:
    columns = table.columns.keys()
    found: dict[str, RecordField] = {}
    for name, field in record_fields(record).items():
        spellings = [spelled[name]] if name in spelled else field.spellings()
        column = next((one for one in spellings if one in columns), None)
        if column is not None:
            found[column] = field
    return found


def _written(field: RecordField, as_set: bool) -> str:
    value = f"record.{field.name}"
    if field.many is not None:
        return f"encode_tags({value})" if as_set else f"encode_list({value})"
    if not field.is_enum:
        return value
    return f"None if {value} is None else int({value})" if field.optional else f"int({value})"


def _read(field: RecordField, value: str, known: dict[str, Any]) -> str:
    if field.many is not None:
        return f"decode_list({value})"
    if field.type is float and not field.optional:
        return f"float({value})"
    if field.type is bool and not field.optional:
        return f"bool({value})"
    if field.is_time and value.endswith(_TIMES):
        return f"time_of({value})"
    if not field.is_enum:
        return value
    known[f"kind_{field.name}"] = field.type
    made = f"kind_{field.name}({value})"
    return f"None if {value} is None else {made}" if field.optional else made


def time_of(us: int | None) -> int | None:
    """Return a stored time, in microseconds since 1970.

    Raises:
        ValueError: it is no time of a calendar.
    """
    if us is not None and not 0 <= us < END_US:
        raise ValueError("a time is out of range")
    return us


def _encode_list(items: Collection[str]) -> str:
    return json.dumps(items, ensure_ascii=False) if items else "[]"
