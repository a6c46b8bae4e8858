"""A catalog as each released version wrote it opens with this one, with everything in it."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from mneme_server.admin.model import DEFAULT_SCOPES, ApiKey, Tenant, secret_hash
from mneme_server.admin.store.catalog import MIGRATIONS, Catalog
from mneme_server.admin.store.places import SqlPlacements
from mneme_server.runtime.placed import HOME

RELEASED = sorted((Path(__file__).parent / "schemas").glob("catalog_*.sql"))
SECRET = "mn_abcdefghijklmnopqrstuvwxyz0123456789"


def test_every_schema_has_its_fixture() -> None:
    schemas = {file.name[:4] for file in MIGRATIONS.glob("[0-9]*.py")}
    assert {file.stem.removeprefix("catalog_") for file in RELEASED} == schemas


@pytest.mark.parametrize("released", RELEASED, ids=lambda file: file.stem)
def test_a_released_catalog_is_upgraded_with_its_tenants_and_keys(
    released: Path, tmp_path: Path
) -> None:
    path = tmp_path / "catalog.db"
    old = sqlite3.connect(path)
    old.executescript(released.read_text())
    old.close()
    catalog = Catalog(path)
    assert catalog.tenants.list("", 10) == [
        Tenant("acme", "Acme Ltd", 1_700_000_100_000_000),
        Tenant("default", "", 1_700_000_000_000_000),
    ]
    assert catalog.tenants.being_deleted().keys() == {"going"}
    assert catalog.tenants.dirty_tenants() == ["acme"]
    assert catalog.keys.find(secret_hash(SECRET)) == ApiKey(
        id="01HF00000000000000000000KY",
        tenant_id="acme",
        name="ci",
        scopes=DEFAULT_SCOPES,
        rate_limit=60,
        prefix="mn_abcde",
        created_at_us=1_700_000_300_000_000,
        last_used_at_us=1_700_000_400_000_000,
    )
    moved_to = "west" if released.stem >= "catalog_0003" else HOME
    assert SqlPlacements(catalog.database).of("acme").place == moved_to
    catalog.close()
