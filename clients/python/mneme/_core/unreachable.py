"""Why there is no connection, in words that say what to do.

gRPC tells it as its libraries do ("Tls handshake failed (TSI_PROTOCOL_FAILURE): SSL_ERROR_SSL …");
that text stays with the error's cause.
"""

from __future__ import annotations

import re

_REASONS = (
    (r"lookup|resolv|[Nn]ame or service not known", "its name is not known"),
    (r"WRONG_VERSION_NUMBER|wrong version number", "it does not speak TLS: connect without TLS"),
    (
        r"CERTIFICATE_VERIFY_FAILED|certificate verify failed",
        "its certificate is not trusted: name the file of the authority that signed it",
    ),
    (
        r"not in peer certificate|Hostname Verification|[Pp]eer name",
        "its certificate is for another name",
    ),
    (r"TLSV1.*CERTIFICATE_REQUIRED|PEER_DID_NOT_RETURN", "it wants a certificate of the client's"),
    (r"[Hh]andshake", "the TLS handshake failed"),
    (r"[Cc]onnection refused", "nothing listens there"),
    (r"[Nn]etwork is unreachable|[Nn]o route to host", "the network does not lead there"),
    (r"[Nn]o such file", "there is no such socket"),
    (
        r"[Ss]ocket closed|[Cc]onnection reset|FD [Ss]hutdown|GOAWAY|[Bb]roken pipe|[Ee]rror 0x",
        "it ended the connection: does it want TLS?",
    ),
    (r"[Tt]imed? ?out|[Tt]imeout|[Dd]eadline", "it does not answer"),
)


def why(details: str) -> str:
    """What gRPC's details of a failed connection mean."""
    for pattern, words in _REASONS:
        if re.search(pattern, details):
            return words
    return "the connection failed"
