"""Which addresses webhooks may call: IANA's tables of special-purpose addresses are the test."""

from __future__ import annotations

import ipaddress
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mneme_server.features.alerts.channels import AllowedChannels

NOT_REACHABLE = [
    "0.0.0.0/8",
    "0.0.0.0/32",
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.0.0.0/24",
    "192.0.0.0/29",
    "192.0.0.8/32",
    "192.0.0.170/32",
    "192.0.0.171/32",
    "192.0.2.0/24",
    "192.88.99.0/24",
    "192.168.0.0/16",
    "198.18.0.0/15",
    "198.51.100.0/24",
    "203.0.113.0/24",
    "240.0.0.0/4",
    "255.255.255.255/32",
    "::1/128",
    "::/128",
    "64:ff9b:1::/48",
    "100::/64",
    "100:0:0:1::/64",
    "2001::/32",
    "2001:2::/48",
    "2001:10::/28",
    "2001:db8::/32",
    "2002::/16",
    "3fff::/20",
    "5f00::/16",
    "fc00::/7",
    "fe80::/10",
]
"""The rows of both tables that are not globally reachable, or of which that cannot be said."""
BESIDES = [
    "192.0.0.9/32",
    "192.0.0.10/32",
    "2001:1::1/128",
    "2001:1::2/128",
    "2001:1::3/128",
    "224.0.0.0/4",
    "ff00::/8",
    "fec0::/10",
    "64:ff9b::/96",
    "::/96",
    "4000::/3",
    "8000::/1",
]
"""Anycast addresses of the nearest relay, multicast, what was for sites, what embeds addresses of
IPv4, and what is nobody's."""
REACHABLE = [
    "192.31.196.0/24",
    "192.52.193.0/24",
    "192.175.48.0/24",
    "2001:3::/32",
    "2001:4:112::/48",
    "2001:20::/28",
    "2001:30::/28",
    "2620:4f:8000::/48",
]

OF_IPV4 = [IPv4Network(one) for one in NOT_REACHABLE + BESIDES if ":" not in one]
NOBODY = AllowedChannels()


def inside(network: IPv4Network | IPv6Network) -> list[IPv4Address | IPv6Address]:
    """The ends of a network, and its middle."""
    return [network[0], network[network.num_addresses // 2], network[-1]]


@pytest.mark.parametrize("row", NOT_REACHABLE + BESIDES)
def test_no_address_of_a_special_purpose_is_called(row: str) -> None:
    for address in inside(ipaddress.ip_network(row)):
        assert not NOBODY.address(address), address


@pytest.mark.parametrize("row", REACHABLE)
def test_what_the_tables_call_reachable_is_called(row: str) -> None:
    for address in inside(ipaddress.ip_network(row)):
        assert NOBODY.address(address), address


@pytest.mark.parametrize(
    "address", ["1.1.1.1", "93.184.216.34", "223.255.255.255", "2606:4700::1111", "2a00::1"]
)
def test_other_addresses_are_called_also_when_they_are_mapped(address: str) -> None:
    assert NOBODY.address(ipaddress.ip_address(address))
    if "." in address:
        assert NOBODY.address(ipaddress.ip_address(f"::ffff:{address}"))


WAYS = {
    "mapped": lambda one: (0xFFFF << 32) | one,
    "compatible": lambda one: one,
    "NAT64": lambda one: int(IPv6Address("64:ff9b::")) | one,
    "NAT64 of a network's own": lambda one: int(IPv6Address("64:ff9b:1::")) | one,
    "6to4": lambda one: (0x2002 << 112) | (one << 80),
    "Teredo, of the client": lambda one: (0x2001 << 112) | (one ^ 0xFFFFFFFF),
    "Teredo, of the server": lambda one: (0x2001 << 112) | (one << 64),
}


@given(st.sampled_from(OF_IPV4), st.data(), st.sampled_from(sorted(WAYS)))
def test_no_address_of_ipv6_leads_to_one_of_ipv4_that_is_not_called(
    network: IPv4Network, data: st.DataObject, way: str
) -> None:
    chosen = data.draw(st.integers(int(network[0]), int(network[-1])))
    assert not NOBODY.address(IPv6Address(WAYS[way](chosen))), IPv4Address(chosen)


def test_an_address_of_one_link_alone_is_not_called() -> None:
    assert not NOBODY.address(ipaddress.ip_address("2606:4700::1111%eth0"))
