"""The synchronous side of the client is made of the asyncio side."""

from __future__ import annotations

import textwrap

import pytest
import unasync
from unasync import OUTPUTS, UnasyncError, made


def test_the_committed_side_is_what_the_other_makes() -> None:
    committed = {path: path.read_text() for folder in OUTPUTS for path in folder.glob("*.py")}
    assert committed
    assert made() == committed


def test_a_module_is_made_with_its_docstrings_and_says_of_what() -> None:
    text = '''
        """Talks."""

        import asyncio

        from mneme._core._async.long_running import AsyncLongRunning
        from mneme._core.aio import AsyncStream
        from mneme._core.iterables import AnyIterable


        class AsyncTalk(AsyncCaller):
            """Talk: `async with client.talk() as talk: await talk.say()`."""

            async def say(self, words: AnyIterable[str]) -> None:
                """Say them to `AsyncServices`, in asyncio or not."""
                async with self.stream() as stream:
                    print([answer async for answer in stream])
                await asyncio.sleep(1)
    '''
    assert unasync.unasync(textwrap.dedent(text).lstrip(), "talk.py") == (
        textwrap.dedent('''
            """Talks."""

            # Made of talk.py by scripts/unasync.py. Do not edit.

            import time

            from mneme._core._sync.long_running import LongRunning
            from mneme._core.sync import Stream
            from collections.abc import Iterable


            class Talk(SyncCaller):
                """Talk: `with client.talk() as talk: talk.say()`."""

                def say(self, words: Iterable[str]) -> None:
                    """Say them to `SyncServices`, in asyncio or not."""
                    with self.stream() as stream:
                        print([answer for answer in stream])
                    time.sleep(1)
        ''').lstrip()
    )


@pytest.mark.parametrize(
    "waiting", ["    await(work)", "    return [one async\n    for one in work]"]
)
def test_what_still_waits_is_refused(waiting: str) -> None:
    text = f'"""Works."""\n\n\nasync def f(work):\n{waiting}\n'
    with pytest.raises(UnasyncError, match=r"^work\.py: no rule makes this synchronous"):
        unasync.unasync(text, "work.py")


def test_a_rule_that_no_module_needs_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unasync, "RULES", (*unasync.RULES, (r"\baread\b", "read")))
    with pytest.raises(UnasyncError, match=r"no module needs the rule \\baread\\b"):
        made()
