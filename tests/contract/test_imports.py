"""No module of the clients comes to import itself."""

from __future__ import annotations

import grimp
import pytest


@pytest.mark.parametrize("package", ["mneme", "mneme_mcp"])
def test_no_package_imports_a_module_that_imports_the_package(package: str) -> None:
    """Circles between siblings are import-linter's; it does not see those through a parent."""
    graph = grimp.build_graph(package, cache_dir=None)
    packages = [module for module in graph.modules if graph.find_children(module)]
    assert package in packages
    circles = [
        (inner, outer)
        for outer in packages
        for inner in graph.find_descendants(outer)
        if graph.find_shortest_chain(inner, outer) and graph.find_shortest_chain(outer, inner)
    ]
    assert circles == []
