"""Checking proofs offline: certificates, heads of logs, and what joins them.

Nothing here needs a server, and nothing that a server says is taken on trust but the key.
"""

from __future__ import annotations

from mneme.proof.certificates import (
    CertificateInvalid,
    CertifiedItem,
    Problem,
    VerifiedCertificate,
    inspect_certificate,
    verify_certificate,
)
from mneme.proof.merkle import ProofInvalid, verify_consistency, verify_inclusion
from mneme.proof.notes import Checkpoint, NoteInvalid, VerifierKey, open_checkpoint

__all__ = [
    "CertificateInvalid",
    "CertifiedItem",
    "Checkpoint",
    "NoteInvalid",
    "Problem",
    "ProofInvalid",
    "VerifiedCertificate",
    "VerifierKey",
    "inspect_certificate",
    "open_checkpoint",
    "verify_certificate",
    "verify_consistency",
    "verify_inclusion",
]
