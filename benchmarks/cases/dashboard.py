"""The dashboard's first page over a tenant with many memories, as Chromium loads it."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median
from typing import Any
from urllib.parse import quote, urlsplit

from playwright.sync_api import Browser, Page, expect, sync_playwright

from benchmarks import dashboard
from benchmarks.context import Context
from benchmarks.report import NO_BUDGET, Row, in_time, milliseconds
from benchmarks.server import ROOT, Server

sys.path.insert(0, str(ROOT / "tests"))
from browser.showing import chromium, launch_options

USEFUL_MS = 1_000.0
_PATIENCE_MS = 120_000
_LOADS = 7
_CALLS = 9


@dataclass(frozen=True)
class Load:
    """One load of the page: milliseconds until its first content and until all of it is there, and
    the server's processor time meanwhile."""

    useful_ms: float
    whole_ms: float
    cpu_ms: float


def run(context: Context) -> list[Row]:
    """Load the first page again and again, and ask alone for each thing that it asks for."""
    program = chromium()
    if program is None:
        return [Row("The first page", "", "Chromium is missing: make chromium", NO_BUDGET, "")]
    data = dashboard.ensure(context.cache, context.sizes.memories, context.say)
    shutil.copytree(data.folder, context.work / "dashboard")
    with (
        Server(context.work / "dashboard", {"http_listen": "127.0.0.1:0"}) as server,
        sync_playwright() as playwright,
    ):
        client = server.tenant(dashboard.TENANT, create=False)
        key = dict(client.metadata)["authorization"].removeprefix("Bearer ")
        browser = playwright.chromium.launch(**launch_options(program))
        context.say("the dashboard's first page")
        first, _ = _load(browser, server, key)
        loads = [_load(browser, server, key) for _ in range(_LOADS)]
        calls = _alone(browser, server, key, loads[-1][1])
        browser.close()
    return [*_pages(context, first, [load for load, _ in loads]), *_rows(context, calls)]


def _pages(context: Context, first: Load, loads: list[Load]) -> list[Row]:
    useful = median(load.useful_ms for load in loads)
    cpu = median(load.cpu_ms for load in loads)
    whole = median(load.whole_ms for load in loads)
    what = f"the dashboard's first page, {context.sizes.memories:,} embedded memories"
    how = (
        f"{len(loads)} loads in Chromium, each with an empty cache; until the latest sessions are"
        " shown, and until nothing loads any more"
    )
    return [
        Row(
            f"{what}: useful content",
            f"≤ {USEFUL_MS:,.0f} ms",
            f"{milliseconds(useful)}; all of it {milliseconds(whole)};"
            f" {milliseconds(cpu)} of the server's processor time",
            in_time(useful, USEFUL_MS),
            how,
            {"useful_ms": useful, "whole_ms": whole, "cpu_ms": cpu},
        ),
        Row(
            f"{what}: useful content, the tenant not open yet",
            "",
            f"{milliseconds(first.useful_ms)}; all of it {milliseconds(first.whole_ms)};"
            f" {milliseconds(first.cpu_ms)} of the server's processor time",
            NO_BUDGET,
            "the first load after the server's start",
            {"useful_ms": first.useful_ms, "whole_ms": first.whole_ms, "cpu_ms": first.cpu_ms},
        ),
    ]


def _rows(context: Context, calls: dict[str, tuple[float, float]]) -> list[Row]:
    return [
        Row(
            f"what the first page asks for: {name}",
            "",
            f"{milliseconds(took)}; {milliseconds(cpu)} of the server's processor time",
            NO_BUDGET,
            f"median of {_CALLS}, alone",
            {"ms": took, "cpu_ms": cpu},
        )
        for name, (took, cpu) in calls.items()
    ]


@contextmanager
def _page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(_PATIENCE_MS)
    expect.set_options(timeout=_PATIENCE_MS)
    try:
        yield context.new_page()
    finally:
        context.close()


def _load(browser: Browser, server: Server, key: str) -> tuple[Load, dict[str, str]]:
    """Load the first page once; return how that went, and the calls that it made with what they
    asked."""
    asked: dict[str, str] = {}
    before = server.cpu_s()
    with _page(browser) as page:
        page.on("request", lambda request: asked.update(_call(request.url, request.post_data)))
        started = time.perf_counter()
        page.goto(f"{server.http_address}/#key={quote(key, safe='')}", wait_until="commit")
        page.get_by_role("table", name="Latest sessions").wait_for()
        useful = time.perf_counter()
        expect(page.get_by_role("status", name="Loading")).to_have_count(0)
        expect(page.locator("[aria-busy=true]")).to_have_count(0)
        whole = time.perf_counter()
        cpu_s = server.cpu_s() - before
    return Load(1e3 * (useful - started), 1e3 * (whole - started), 1e3 * cpu_s), asked


def _call(url: str, body: str | None) -> dict[str, str]:
    method = urlsplit(url).path.removeprefix("/mneme.v1.")
    if body is None or method == urlsplit(url).path:
        return {}
    return {f"{method} {body}": url}


def _alone(
    browser: Browser, server: Server, key: str, asked: dict[str, str]
) -> dict[str, tuple[float, float]]:
    """Ask for each thing alone; return the milliseconds it took, and those of the processor."""
    found: dict[str, tuple[float, float]] = {}
    with _page(browser) as page:
        request = page.request
        for what, url in asked.items():
            name, _, body = what.partition(" ")
            headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}

            def ask(url: str = url, body: str = body, headers: Any = headers) -> None:
                answer = request.post(url, data=body, headers=headers)
                if not answer.ok:
                    raise AssertionError(f"{url}: {answer.status} {answer.text()}")

            found[f"{name} {body}"] = _median_of(ask, server)
    return found


def _median_of(ask: Callable[[], None], server: Server) -> tuple[float, float]:
    took: list[float] = []
    before = server.cpu_s()
    for _ in range(_CALLS):
        started = time.perf_counter()
        ask()
        took.append(1e3 * (time.perf_counter() - started))
    return median(took), 1e3 * (server.cpu_s() - before) / _CALLS
