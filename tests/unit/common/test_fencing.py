"""Leases: whose a tenant's work is, and that what is written names it."""

from __future__ import annotations

from mneme_server.common import fencing
from mneme_server.common.fencing import OWN, Fence


def test_what_is_written_names_the_lease_of_the_work_at_hand() -> None:
    fence = Fence("acme", "acme", "one", 7)
    with fencing.under(fence):
        assert (fencing.current(), fencing.fence_of("acme"), fencing.fence_of("other")) == (
            fence, fence, None,
        )  # fmt: skip
    assert fencing.current() is None


def test_all_work_is_the_only_servers_and_names_no_lease() -> None:
    """A database of one server has no leases; a tenant that lies in another database, neither."""
    held, taken = OWN.hold("acme"), OWN.take("deletion/acme/1", "acme")
    assert OWN.holds("acme")
    assert held == OWN.claim("acme", patience_s=0.0)
    for fence in (held, taken):
        with fencing.under(fence):
            assert fencing.current() is None
