"""Ids of predictions: each holds all that is needed to learn from the reward.

So a prediction costs no write and cannot be lost. An id is sealed with its session's secret: what
was not made here, or was changed, is not a prediction. Which ids were used is known from the steps
that name them.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import json
import secrets
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

from mneme_server.common.canonical import Json
from mneme_server.common.clock import DAY_US

LIFETIME_US = 30 * DAY_US
"""How long what came of a prediction can be told."""

_SEAL_BYTES = 16
_HEAD = struct.Struct(">BQQ")
"""A version, when it was made in microseconds, and a number drawn by lot."""
_VERSION = 1
_PACKED = 0x80
"""Set in the version where the body is compressed."""
_WORTH_PACKING = 160
_MOST_BYTES = 1_000_000
_encoder = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False)


@dataclass(frozen=True, slots=True)
class PredictionContent:
    """What an id holds.

    Args:
        session_id: whose prediction it is.
        state: of which the question was.
        action: the answer.
        probability: with which it was chosen; None if it was the only one possible.
        actor: whose episode it belongs to.
        available: the actions that it was chosen from; empty: all.
        mark: tells it from all others of the session.
        made_us: when it was made.
    """

    session_id: str
    state: Json
    action: Json
    probability: float | None
    actor: str
    available: Sequence[Json] = ()
    mark: str = ""
    made_us: int = 0


class InvalidPredictionId(Exception):
    """It is not the id of a prediction."""


def new_secret() -> bytes:
    """Return a secret for a session."""
    return secrets.token_bytes(32)


def seal(prediction: PredictionContent, secret: bytes, now_us: int) -> str:
    """Return the id of a prediction that is made now."""
    body = _encoder.encode(
        [
            prediction.session_id, prediction.actor, prediction.probability, prediction.action,
            prediction.state, *prediction.available,
        ]
    ).encode()  # fmt: skip
    version = _VERSION
    if len(body) > _WORTH_PACKING:
        body, version = zlib.compress(body, 1), version | _PACKED
    sealed = _HEAD.pack(version, now_us, secrets.randbits(64)) + body
    return base64.urlsafe_b64encode(_seal(sealed, secret) + sealed).rstrip(b"=").decode()


def opened(prediction_id: str) -> PredictionContent:
    """Return what an id says that it holds; `check_seal` tells whether that is true.

    Raises:
        InvalidPredictionId: it is no id.
    """
    raw = _raw(prediction_id)
    try:
        version, made_us, number = _HEAD.unpack_from(raw, _SEAL_BYTES)
        body = raw[_SEAL_BYTES + _HEAD.size :]
        if version & _PACKED:
            body = _unpacked(body)
        session_id, actor, probability, action, state, *available = json.loads(body)
    except (struct.error, zlib.error, ValueError, TypeError, RecursionError) as error:
        raise InvalidPredictionId from error
    if version & ~_PACKED != _VERSION or not isinstance(session_id, str):
        raise InvalidPredictionId
    mark = f"{number:016x}"
    return PredictionContent(
        session_id, state, action, probability, actor, available, mark, made_us
    )


def check_seal(prediction_id: str, secret: bytes) -> None:
    """Check that an id was made with the secret.

    Raises:
        InvalidPredictionId: it was not.
    """
    raw = _raw(prediction_id)
    if not hmac.compare_digest(raw[:_SEAL_BYTES], _seal(raw[_SEAL_BYTES:], secret)):
        raise InvalidPredictionId


def _unpacked(body: bytes) -> bytes:
    unpacking = zlib.decompressobj()
    unpacked = unpacking.decompress(body, _MOST_BYTES)
    if unpacking.unconsumed_tail:
        raise InvalidPredictionId
    return unpacked


def _seal(sealed: bytes, secret: bytes) -> bytes:
    return hmac.digest(secret, sealed, "sha256")[:_SEAL_BYTES]


def _raw(prediction_id: str) -> bytes:
    try:
        padded = prediction_id + "=" * (-len(prediction_id) % 4)
        return base64.b64decode(padded, altchars=b"-_", validate=True)
    except (binascii.Error, ValueError) as error:
        raise InvalidPredictionId from error
