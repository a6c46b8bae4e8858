"""What all tables of a tenant's database are made of.

Every table starts with `tenant_id`, and so does every index: with SQLite a tenant has a file of its
own, and the same statements run where tenants share one database. Times are microseconds since
1970, UTC. JSON is stored as canonical text.
"""

from __future__ import annotations

from enum import IntEnum

from sqlalchemy import BigInteger, Column, Integer, MetaData, SmallInteger, Text

metadata = MetaData()
"""The tables of a tenant's database; each capability adds its own."""

serial_type = BigInteger().with_variant(Integer, "sqlite")
"""SQLite numbers rows by itself only in a column of type INTEGER."""


def tenant_key() -> Column[str]:
    """Return the column `tenant_id` of a table whose primary key begins with it."""
    return Column("tenant_id", Text, nullable=False, primary_key=True)


def tenant_column() -> Column[str]:
    """Return the column `tenant_id` of a table whose rows are numbered."""
    return Column("tenant_id", Text, nullable=False)


def text_column(name: str) -> Column[str]:
    """Return a column of text, never null."""
    return Column(name, Text, nullable=False)


def int64_column(name: str) -> Column[int]:
    """Return a column of whole numbers, never null: counts, and times."""
    return Column(name, BigInteger, nullable=False)


def time_column(name: str, *, nullable: bool = False) -> Column[int]:
    """Return a column of microseconds since 1970, UTC."""
    return Column(name, BigInteger, nullable=nullable, info={"time": True})


def json_column(name: str) -> Column[str]:
    """Return a column of JSON as canonical text, never null."""
    return Column(name, Text, nullable=False, info={"json": True})


def enum_column(name: str, members: type[IntEnum]) -> Column[int]:
    """Return a column that holds the numbers of these members, never null."""
    return Column(name, SmallInteger, nullable=False, info={"enum": members})


def rows_are(kind: str, key: str) -> dict[str, object]:
    """Return a table's `info`: what a row is called, and which column names it, when one is found
    damaged.
    """
    return {"kind": kind, "key": key}
