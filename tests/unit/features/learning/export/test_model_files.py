"""Copies of exported models lie in the tenant's folder until what they learned of is forgotten."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from mneme_server.features.learning.export.exports import TenantModelFiles
from store_contract.samples import learning_session


def test_what_a_session_exported_goes_and_that_of_another_whose_id_ends_alike_stays(
    tmp_path: Path,
) -> None:
    files = TenantModelFiles(tmp_path, lambda _tenant_id: False)
    (tmp_path / "tenants" / "acme").mkdir(parents=True)
    before, now, other = (
        tmp_path / files.write("acme", replace(learning_session(id_), number=number), b"a model")
        for number, id_ in ((1, "b"), (12, "b"), (3, "a-b"))
    )
    files.remove_of("acme", "b")
    assert [path.exists() for path in (before, now, other)] == [False, False, True]
