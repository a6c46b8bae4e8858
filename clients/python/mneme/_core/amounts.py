"""Amounts as people read them."""

from __future__ import annotations


def dollars(amount: float) -> str:
    """An amount of US dollars: to the cent, or to two digits below one."""
    size = abs(amount)
    if size >= 0.01 or not amount:
        return f"${amount:,.2f}"
    return f"${amount:.2g}" if size >= 1e-4 else f"${amount:.1e}"
