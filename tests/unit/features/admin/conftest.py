from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from mneme_server.features.admin.authentication import KeyAuthenticator
from mneme_server.features.admin.keys import ApiKeys
from mneme_server.features.admin.store.catalog import Catalog
from mneme_server.features.admin.tenants import Tenants
from unit.features.admin.fakes import Clock, Folders


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    catalog = Catalog(tmp_path / "catalog.db")
    yield catalog
    catalog.close()


@pytest.fixture
def folders() -> Folders:
    return Folders()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def authenticator(catalog: Catalog, clock: Clock) -> KeyAuthenticator:
    return KeyAuthenticator(catalog.keys, clock)


@pytest.fixture
def tenants(catalog: Catalog, folders: Folders, authenticator: KeyAuthenticator) -> Tenants:
    tenants = Tenants(catalog.tenants, folders, authenticator)
    tenants.ensure_default()
    return tenants


@pytest.fixture
def keys(catalog: Catalog, tenants: Tenants, authenticator: KeyAuthenticator) -> ApiKeys:
    return ApiKeys(catalog.keys, catalog.tenants, authenticator)
