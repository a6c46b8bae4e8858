"""Amounts as people read them."""

from __future__ import annotations


def dollars(amount: float) -> str:
    """An amount of US dollars: to the cent, or to two digits where that takes more decimals."""
    size = abs(amount)
    if size >= 1 or not amount:
        return f"${amount:,.2f}"
    if size < 1e-4:
        return f"${amount:.1e}"
    decimals = len(f"{amount:.2g}".partition(".")[2])
    return f"${amount:.{max(2, decimals)}f}"
