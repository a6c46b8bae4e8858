"""Imports files: reads, recognises, plans and records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import BinaryIO

from mneme.importing.plan import Defaults, Planned
from mneme.importing.readers import Reader, attempted, best, readers
from mneme.importing.reading import TOO_DEEP, Broken, Place, Record, read_records
from mneme.importing.recording import FileReport, Recorder, Sink, Totals
from mneme.importing.redaction import Redactor
from mneme.importing.rehearsal import Rehearsal
from mneme.importing.source import Source, UnreadableError, open_source, unpacking_errors

# How many records are looked at before the file is taken for what they are.
_HEAD = 50
_SUFFIXES = (".json", ".jsonl", ".ndjson", ".traj", ".zst")
# Results that a transcript refers to, which are read with it.
_SIDE_FOLDER = "tool-results"


class Importer:
    """Imports files one after the other; what cannot be used is reported, the rest goes in.

    Args:
        sink: a client of the server; None rehearses, and sends nothing.
        defaults: what the caller says of everything.
        form: the format's name, as `readers()` has it; "auto" looks at the content.
        redact: mask secrets.
        complete: whether the files are finished; None says so of those that were not written to
            for an hour. The session of a finished transcript is ended.
        on_record: told after each record.
        on_wait: told how many seconds the server asked to wait, and why.
    """

    def __init__(
        self,
        sink: Sink | None,
        *,
        defaults: Defaults | None = None,
        form: str = "auto",
        redact: bool = False,
        complete: bool | None = None,
        on_record: Callable[[], None] = lambda: None,
        on_wait: Callable[[float, str], None] = lambda seconds, why: None,
    ) -> None:
        self.totals = Totals()
        self._defaults = defaults or Defaults()
        self._form = form
        self._mask = Redactor(self.totals.masked) if redact else None
        self._complete = complete
        self._on_record = on_record
        self._recorder = Recorder(sink or Rehearsal(), self.totals, on_wait)
        self._done: set[Path] = set()
        self._read_before = 0
        self._tell: Callable[[], int] = lambda: 0

    @property
    def position(self) -> int:
        """How many bytes of all files were read so far, packed as they are."""
        return self._read_before + self._tell()

    def add_path(self, path: Path, *, found: bool = False) -> None:
        """Import a file, and the files that belong to it (of subagents), unless it was imported.

        Args:
            path: the file.
            found: it was found in a folder, rather than named: when nothing in it is recognised,
                it is skipped without being broken.

        Raises:
            OSError: it cannot be opened.
            MnemeError: the server cannot take anything; importing again later goes on from there.
        """
        if path.resolve() in self._done:
            return
        self._done.add(path.resolve())
        with path.open("rb") as stream:
            companions = self.add_stream(stream, str(path), found=found)
        for companion in companions:
            self.add_path(companion, found=True)

    def add_stream(self, stream: BinaryIO, name: str, *, found: bool = False) -> list[Path]:
        """Import an open file; see `add_path`. Returns the files that belong to it."""
        try:
            source = open_source(name, stream, complete=self._complete, mask=self._mask)
        except UnreadableError as error:
            self.totals.broken.append(Broken(Place(name, 0, 0), str(error)))
            return []
        report = FileReport(source.name)
        self._tell = stream.tell if source.path is not None else lambda: 0
        companions = self._read(source, report, found=found)
        report.bytes = source.path.stat().st_size if source.path is not None else 0
        self._read_before, self._tell = self.position, lambda: 0
        self._recorder.flush()
        return companions

    def _read(self, source: Source, report: FileReport, *, found: bool) -> list[Path]:
        records = self._records(source)
        head = list(islice(records, _HEAD))
        known = [self._reader_of(item) for item in head if isinstance(item, Record)]
        if found and not any(known):
            self.totals.skipped.append(source.name)
            return []
        self.totals.files.append(report)
        whole = next((reader for reader in known if reader is not None and reader.by_line), None)
        active: dict[type[Reader], Reader] = {}
        for item in chain(head, records):
            self.totals.records += 1
            if isinstance(item, Broken):
                self.totals.broken.append(item)
            else:
                kind = whole or self._reader_of(item)
                if kind is not None and kind not in active:
                    active[kind] = kind(source, self._defaults)
                self._plan(item, active[kind] if kind else None, report)
            self._on_record()
        for reader in active.values():
            self._take(reader.finish(), Place(source.name, 0, 0), report)
        return [path for reader in active.values() for path in reader.companions()]

    def _records(self, source: Source) -> Iterator[Record | Broken]:
        last = Place(source.name, 0, 0)
        try:
            for item in read_records(source.stream, source.name):
                last = item.place
                yield self._masked(item) if isinstance(item, Record) else item
        except unpacking_errors() as error:
            place = Place(source.name, last.record + 1, last.line + 1)
            # No record: it is told of a file in a folder too, of which nothing could be recognised.
            self.totals.broken.append(Broken(place, f"cannot be unpacked any further: {error}"))

    def _masked(self, record: Record) -> Record | Broken:
        if self._mask is None:
            return record
        try:
            return replace(record, value=self._mask(record.value), original=record.value)
        except RecursionError:
            return Broken(record.place, TOO_DEEP)

    def _reader_of(self, record: Record) -> type[Reader] | None:
        return best(record.value) if self._form == "auto" else readers()[self._form]

    def _plan(self, record: Record, reader: Reader | None, report: FileReport) -> None:
        if reader is None:
            titles = ", ".join(sorted(one.title for one in readers().values()))
            why = f"not recognised; it is none of {titles}"
            self.totals.broken.append(Broken(record.place, why))
            return
        report.formats[reader.name] += 1
        self._take(reader.read(record), record.place, report)

    def _take(self, found: Iterable[Planned | Broken], place: Place, report: FileReport) -> None:
        for planned in attempted(place, found):
            if isinstance(planned, Broken):
                self.totals.broken.append(planned)
            else:
                report.count(planned)
                self._recorder.add(planned)


def import_file(
    client: Sink | None,
    path: str | Path,
    *,
    defaults: Defaults | None = None,
    form: str = "auto",
    redact: bool = False,
    complete: bool | None = None,
) -> Totals:
    """Import one transcript now, with those of its subagents; safe to repeat as the file grows.

    Args:
        client: a `MnemeClient`; None only counts.
        path: the file.
        defaults: what to say of its session: agent, project, user, tags.
        form: the format, or "auto".
        redact: mask secrets.
        complete: True when its session has ended, False when it goes on; None tells by when the
            file was last written to.

    Returns:
        What went in, what had been there, and what could not be used (`broken`).

    Raises:
        OSError: the file cannot be opened.
        MnemeError: the server cannot take anything.
    """
    importer = Importer(client, defaults=defaults, form=form, redact=redact, complete=complete)
    importer.add_path(Path(path))
    return importer.totals


def files_below(folder: Path) -> list[Path]:
    """The files of a folder that may be transcripts, in the order in which they were last written.

    A resumed session repeats the history of the one before it. In this order the history stays
    with the session in which it happened.
    """
    found = [
        path
        for path in folder.rglob("*")
        if Path(path.name.removesuffix(".gz")).suffix in _SUFFIXES
        and _SIDE_FOLDER not in path.parts
        and path.is_file()
    ]
    return sorted(found, key=lambda path: (path.stat().st_mtime, str(path)))
