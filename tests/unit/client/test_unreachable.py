"""Why there is no connection, in words that are true."""

from __future__ import annotations

import pytest
from mneme import MnemeClient
from mneme._core.unreachable import why
from mneme.errors import UnavailableError


def test_a_server_whose_name_nobody_knows_is_said_to_be_unknown() -> None:
    with (
        MnemeClient("nobody.invalid:50051", retries=0) as client,
        pytest.raises(UnavailableError, match="its name is not known"),
    ):
        client.get_stats(timeout=60)


@pytest.mark.parametrize(
    ("details", "said"),
    [
        (
            "errors resolving foo:50051: [field:hostname lookup error:address lookup failed for"
            " foo:50051: Domain name not found]",
            "its name is not known",
        ),
        ("Peer name foo is not in peer certificate", "its certificate is for another name"),
        ("Hostname Verification Check failed.", "its certificate is for another name"),
        ("Failed to connect to remote host: Connection refused", "nothing listens there"),
        ("what nobody foresaw", "the connection failed"),
    ],
)
def test_what_grpc_says_is_told_in_words(details: str, said: str) -> None:
    assert why(details) == said
