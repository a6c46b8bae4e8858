"""The identity of one run of a local server: a certificate that it signed itself.

Participants read it from the folder and trust nothing else, so that every connection begins with
the proof that this is the folder's server, before a key is sent. The private key never leaves the
process.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from ipaddress import ip_address

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

# It ends with its server, whatever a clock says.
_FROM = datetime(2000, 1, 1, tzinfo=UTC)
_UNTIL = datetime(9999, 12, 31, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Identity:
    """A certificate and its private key, PEM."""

    certificate: bytes
    key: bytes = field(repr=False)


def new_identity(host: str) -> Identity:
    """Make a certificate for a host given by its IP address."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "mneme local server")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(_FROM)
        .not_valid_after(_UNTIL)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address(host))]), False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    return Identity(
        certificate.public_bytes(Encoding.PEM),
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
    )
