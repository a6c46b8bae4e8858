"""The settings of proof."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, Field

from mneme_server.engine.settings import none_if_empty


class ProofSettings(BaseModel):
    """What tenants' keys are encrypted with, and how many certificates are kept."""

    key_file: Annotated[Path | None, BeforeValidator(none_if_empty)] = Field(
        None,
        description="a file with the secret that the tenants' signing keys are encrypted with, at"
        " least 16 bytes; keep it apart from the data folder. Without it, they are stored there"
        " unencrypted, readable by the server's user alone. Required with MNEME_DATABASE_URL:"
        " every server needs the same secret",
    )
    plain_keys: bool = Field(
        False,
        description="with MNEME_DATABASE_URL and without MNEME_KEY_FILE: store the signing keys in"
        " the database unencrypted, so that its dumps and backups hold them, too; by default the"
        " server refuses to start like this",
    )
    certificates_kept: int = Field(
        10_000,
        ge=0,
        description="certificates kept per tenant; beyond that the oldest are removed",
    )
    certificates_bytes: int = Field(
        64 * 1024 * 1024,
        ge=0,
        description="bytes of certificates kept per tenant; beyond that the oldest are removed",
    )
