"""Work that was begun elsewhere."""

from __future__ import annotations

from mneme_server.common.begun import Begun, repeatable


def test_work_that_is_asked_for_several_times_is_waited_for_once() -> None:
    waited: list[int] = []

    def result() -> int:
        waited.append(1)
        return 7

    work = repeatable(Begun(result, lambda: False))
    assert not work.is_ready()
    assert [work(), work()] == [7, 7]
    assert work.is_ready()
    assert waited == [1]


def test_work_is_ready_when_what_it_repeats_is() -> None:
    assert repeatable(Begun(lambda: None)).is_ready()
