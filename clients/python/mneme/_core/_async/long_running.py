"""Work that outlasts a call, as the client follows it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from mneme._core.long_running import LONGEST_WAIT_S, AnswerT_co, Followed, OperationT, Patience
from mneme.errors import DeadlineExceededError, UnavailableError


class AsyncLongRunning(Followed[OperationT, AnswerT_co]):
    """Work that the server does after the call has answered, as it was last seen.

        backup = await client.backup()
        answer = await backup.result(timeout=600)
        print(answer.path)

    Attributes:
        operation: the operation as it was last seen.
    """

    async def refresh(self) -> OperationT:
        """The operation as it is now."""
        answer = await self._client.get_operation(self.id, tenant_id=self._tenant_id)
        return self._seen(answer)

    async def updates(
        self, timeout: float | None = None, every: float = 1.0
    ) -> AsyncIterator[OperationT]:
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
                answer = await self._client.wait_operation(
                    self.id, tenant_id=self._tenant_id, **patience.ask()
                )
            except (UnavailableError, DeadlineExceededError) as error:
                await asyncio.sleep(patience.failed(error))
                continue
            yield self._seen(answer)
            if self.done:
                return
            await asyncio.sleep(patience.answered())

    async def wait(self, timeout: float | None = None) -> OperationT:
        """Wait until it has ended, however it ended.

        Args:
            timeout: seconds; None: no limit.

        Raises:
            TimeoutError: it has not ended in time; it goes on.
            MnemeError: the server does not answer, or does not know it any more.
        """
        if not self.done:
            async for _ in self.updates(timeout, LONGEST_WAIT_S):
                pass
        return self.operation

    async def result(self, timeout: float | None = None) -> AnswerT_co:
        """Wait until it has ended and return what it came to.

        Raises:
            MnemeError: it failed or was cancelled, as its `error` says.
            As `wait`.
        """
        await self.wait(timeout)
        return self._outcome()

    async def cancel(self) -> OperationT:
        """Have it stop; it may go on for a moment.

        Raises:
            FailedPreconditionError: it has begun to change what it was started for.
        """
        answer = await self._client.cancel_operation(self.id, tenant_id=self._tenant_id)
        return self._seen(answer)
