"""How many connections may come from where."""

from __future__ import annotations

from itertools import takewhile

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mneme_server.common.address import networks_in
from mneme_server.edge.http.fair_shares import OpenConnections, Shares


def entered(connections: OpenConnections, host: str, most: int = 1_000) -> int:
    """How many connections from one address may stay."""
    return sum(1 for _ in takewhile(lambda _: connections.enter(host), range(most)))


def test_from_one_place_comes_half_at_most_and_from_the_next_half_of_what_is_left() -> None:
    connections = OpenConnections(100)
    assert entered(connections, "192.0.2.1") == 50
    assert entered(connections, "192.0.2.2") == 25
    assert entered(connections, "192.0.2.3") == 12
    for _ in range(50):
        connections.leave("192.0.2.1")
    assert entered(connections, "192.0.2.3") == 25


@pytest.mark.parametrize(
    ("first", "second", "alike"),
    [
        ("2001:db8::1", "2001:db8::ffff:2", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("192.0.2.1", "::ffff:192.0.2.1", True),
        ("fe80::1%eth0", "fe80::2", True),
        ("192.0.2.1", "192.0.2.2", False),
    ],
)
def test_addresses_that_a_peer_may_choose_among_are_one_place(
    first: str, second: str, alike: bool
) -> None:
    connections = OpenConnections(100)
    assert entered(connections, first) == 50
    assert (entered(connections, second) == 0) is alike


@pytest.mark.parametrize("host", ["10.0.0.7", "10.1.2.3", "::ffff:10.0.0.7", "2001:db8::7", None])
def test_a_proxys_connections_are_as_many_as_there_are(host: str | None) -> None:
    connections = OpenConnections(100, networks_in("10.0.0.7, 10.1.0.0/16,2001:db8::/32"))
    assert entered(connections, host or "") == 100
    assert not connections.enter("192.0.2.1")


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.integers(1, 40)), max_size=50))
def test_whatever_others_take_there_is_some_left_for_one_more(
    wanted: list[tuple[str, int]],
) -> None:
    shares = Shares(1_000)
    for who, more in wanted:
        shares.take(who, more)
        assert shares.held(who) <= shares.left + more
        assert shares.left >= 1_000 // 2**4 - 40
