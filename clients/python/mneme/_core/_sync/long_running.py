"""Work that outlasts a call, as the client follows it."""

# Made of ../_async/long_running.py by scripts/unasync.py. Do not edit.

from __future__ import annotations

import time
from collections.abc import Iterator

from mneme._core.long_running import LONGEST_WAIT_S, AnswerT_co, Followed, OperationT, Patience
from mneme.errors import DeadlineExceededError, UnavailableError


class LongRunning(Followed[OperationT, AnswerT_co]):
    """Work that the server does after the call has answered, as it was last seen.

        backup = client.backup()
        answer = backup.result(timeout=600)
        print(answer.path)

    Attributes:
        operation: the operation as it was last seen.
    """

    def refresh(self) -> OperationT:
        """The operation as it is now."""
        answer = self._client.get_operation(self.id, tenant_id=self._tenant_id)
        return self._seen(answer)

    def updates(self, timeout: float | None = None, every: float = 1.0) -> Iterator[OperationT]:
        """The operation as it is every so many seconds, and at its end, which is the last.

        Goes on when the server is restarted meanwhile.

        Args:
            timeout: seconds in all; None: no limit.
            every: seconds between two looks.

        Raises:
            TimeoutError: it has not ended in time; it goes on.
            MnemeError: the server does not answer, or does not know it any more.
        """
        patience = Patience(timeout, every)
        while True:
            try:
                answer = self._client.wait_operation(
                    self.id, tenant_id=self._tenant_id, **patience.ask()
                )
            except (UnavailableError, DeadlineExceededError) as error:
                time.sleep(patience.failed(error))
                continue
            yield self._seen(answer)
            if self.done:
                return
            time.sleep(patience.answered())

    def wait(self, timeout: float | None = None) -> OperationT:
        """Wait until it has ended, however it ended.

        Args:
            timeout: seconds; None: no limit.

        Raises:
            TimeoutError: it has not ended in time; it goes on.
            MnemeError: the server does not answer, or does not know it any more.
        """
        if not self.done:
            for _ in self.updates(timeout, LONGEST_WAIT_S):
                pass
        return self.operation

    def result(self, timeout: float | None = None) -> AnswerT_co:
        """Wait until it has ended and return what it came to.

        Raises:
            MnemeError: it failed or was cancelled, as its `error` says.
            As `wait`.
        """
        self.wait(timeout)
        return self._outcome()

    def cancel(self) -> OperationT:
        """Have it stop; it may go on for a moment.

        Raises:
            FailedPreconditionError: it has begun to change what it was started for.
        """
        answer = self._client.cancel_operation(self.id, tenant_id=self._tenant_id)
        return self._seen(answer)
