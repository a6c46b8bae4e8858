"""The errors of embedding a text."""


class EmbeddingError(Exception):
    """A text could not be embedded.

    `message` is for any caller. `detail` is for whoever runs the server, who sees both in
    `str(error)`: where the backend is, what the system said. `retryable` tells whether the same
    call may succeed later, `retry_after_s` (seconds) when the backend said so. `hopeless` tells
    that the fault is the text's: no call will ever embed it.
    """

    def __init__(
        self,
        message: str,
        *,
        detail: str = "",
        retryable: bool = False,
        retry_after_s: float | None = None,
        hopeless: bool = False,
    ) -> None:
        super().__init__(f"{message} ({detail})" if detail else message)
        self.message = message
        self.detail = detail
        self.retryable = retryable
        self.retry_after_s = retry_after_s
        self.hopeless = hopeless


class ModelUnavailable(EmbeddingError):
    """The model itself is missing or damaged; the message says what to install, pull or run. Never
    retryable.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message, retryable=False)


class ServiceFailed(EmbeddingError):
    """A service failed at what it was sent, again and again: it may be broken, or the text be to
    blame (some answer 500 to one of too many tokens). Retryable, as far as is known."""


class RequestRefused(EmbeddingError):
    """A service refused what it was sent, such as a text of too many tokens. Never retryable."""
