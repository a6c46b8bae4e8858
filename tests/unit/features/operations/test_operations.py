"""What happens to an operation when the catalog cannot be written for a moment."""

from __future__ import annotations

from typing import Any
from unittest import mock

import pytest
from mneme_server.common.errors import Reason, Unavailable
from mneme_server.features.operations import operations
from mneme_server.features.operations.model import OperationState
from mneme_server.features.operations.operations import Run


class Busy:
    """Stands for `SqlOperations`: one method fails so many times."""

    def __init__(self, method: str, failures: int) -> None:
        self._method, self._left = method, failures
        self.ended: list[OperationState] = []
        self.operation = mock.Mock(done=False, cancel_requested=False, attempts=0, request={})

    def _called(self, method: str) -> None:
        if method == self._method and self._left:
            self._left -= 1
            raise Unavailable("it is locked", reason=Reason.DATABASE_ERROR)

    def get(self, *_: Any) -> Any:
        self._called("get")
        return self.operation

    def begin(self, *_: Any) -> Any:
        self._called("begin")
        return self.operation

    def finish(self, _key: Any, state: OperationState, **_: Any) -> None:
        self._called("finish")
        self.ended.append(state)


@pytest.mark.parametrize("method", ["get", "begin", "finish"])
def test_it_is_done_all_the_same_and_only_once(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operations, "_WRITE_AGAIN_S", 0.0)
    store, work = Busy(method, failures=3), mock.Mock()
    work.run.return_value = {}
    run = Run(mock.Mock(), work, store, mock.Mock(stopping=False), kept_us=1)  # type: ignore[arg-type]
    run.run(mock.Mock())
    assert store.ended == [OperationState.SUCCEEDED]
    assert work.run.call_count == 1
    assert run.ended.is_set()
