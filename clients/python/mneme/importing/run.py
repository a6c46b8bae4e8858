"""Imports files: reads, recognises, plans and records."""

from __future__ import annotations

from collections.abc import Callable
from typing import BinaryIO, Literal

from mneme.importing.native import NativeReader, is_native
from mneme.importing.plan import Defaults, Planned, UnusableError
from mneme.importing.reading import Broken, Record, read_records
from mneme.importing.recording import Recorder, Totals
from mneme.importing.transcripts import messages_of, plan_transcript

Format = Literal["auto", "openai", "events"]


def import_stream(
    stream: BinaryIO,
    name: str,
    recorder: Recorder,
    totals: Totals,
    *,
    defaults: Defaults,
    form: Format = "auto",
    on_record: Callable[[], None] = lambda: None,
) -> None:
    """Import one file; what cannot be used is in `totals.broken`, the rest goes in.

    Args:
        stream: the file.
        name: its name, for messages.
        recorder: where planned sessions go; flushed at the end.
        totals: where to count.
        defaults: what the caller says of everything.
        form: what the records are; "auto" looks at each.
        on_record: told after each record.

    Raises:
        MnemeError: the server cannot take anything; importing again later goes on from there.
    """
    native = NativeReader(defaults)
    for record in read_records(stream, name):
        totals.records += 1
        if isinstance(record, Broken):
            totals.broken.append(record)
        else:
            try:
                planned = _plan(record, native, defaults, form)
            except UnusableError as error:
                totals.broken.append(Broken(record.place, str(error)))
            else:
                if planned is not None:
                    recorder.add(planned)
        on_record()
    recorder.flush()


def _plan(record: Record, native: NativeReader, defaults: Defaults, form: Format) -> Planned | None:
    if form == "openai" or (form == "auto" and messages_of(record.value) is not None):
        return plan_transcript(record, defaults)
    if form == "events" or is_native(record.value):
        return native.plan(record)
    raise UnusableError(
        "neither a chat transcript (a list of messages, or a record with one under `messages`, "
        "`traj`, `conversation`) nor one of Mneme's events (`event_type`) or sessions"
    )
