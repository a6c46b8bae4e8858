"""The capabilities of the server. A new one is its folder and a name here."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pathlib import Path

from mneme_server.capability import Capability
from mneme_server.engine.store.unit import TenantSchema

NAMES = (
    "events",
    "otlp",
    "recall",
    "learn",
    "memory",
    "memory.patterns",
    "context",
    "skills",
    "operations",
    "causal",
    "proof",
    "memory.upkeep",
    "reflect",
    "learning",
    "alerts",
    "admin",
    "admin.forgetting",
)
"""The folders of `features/`, each after those that it builds on."""


@cache
def capabilities() -> tuple[Capability, ...]:
    """Return what each folder's `capability.py` declares.

    Raises:
        TypeError: one declares no `CAPABILITY`.
    """
    return tuple(_load(name) for name in NAMES)


@cache
def tenant_schema() -> TenantSchema:
    """Return what a tenant's database is made of."""
    return TenantSchema.of(
        [one.migrations for one in capabilities() if one.migrations is not None],
        [capability.kinds for capability in capabilities()],
        [one.seals for one in capabilities() if one.seals is not None],
        [one.forgets for one in capabilities() if one.forgets is not None],
        [one.implements for one in capabilities()],
    )


@cache
def catalog_migrations() -> tuple[Path, ...]:
    """Return the folders of revisions that capabilities bring to the catalog."""
    folders = (one.catalog_migrations for one in capabilities())
    return tuple(folder for folder in folders if folder is not None)


def _load(name: str) -> Capability:
    module = import_module(f"mneme_server.features.{name}.capability")
    declared = getattr(module, "CAPABILITY", None)
    if not isinstance(declared, Capability):
        raise TypeError(f"{module.__name__} declares no CAPABILITY")
    return declared
