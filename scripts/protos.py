"""Write the API for languages that have no client here: what `make dist` puts beside the wheels.

A descriptor set (`mneme-VERSION.binpb`) has the schemas as they are, with what they import and with
their comments. An archive (`mneme-protos-VERSION.tar.gz`) has them as files without validation
rules, routes and Mneme's own options: code is generated from it with nothing else at hand. Comments
in both tell what the options say.

Usage: python scripts/protos.py FOLDER
"""

from __future__ import annotations

import gzip
import io
import sys
import tarfile
import tempfile
from collections.abc import Iterable, Iterator
from importlib.resources import files
from pathlib import Path

import mneme
from clientgen.description import PACKAGE
from clientgen.telling import tell
from google.protobuf import descriptor_pb2
from google.protobuf.descriptor import FieldDescriptor as Types
from google.protobuf.message import Message
from grpc_tools import protoc

ROOT = Path(__file__).resolve().parent.parent
SHIPPED = "google/rpc/status.proto"
"""The one schema of others that code is not always generated with already."""
_OPTIONS = "mneme/v1/options.proto"
_SCALARS = {
    number: name.removeprefix("TYPE_").lower()
    for name, number in descriptor_pb2.FieldDescriptorProto.Type.items()
}
_Path = tuple[int, ...]


def compile_schemas() -> bytes:
    """The API's files and what they import, as a FileDescriptorSet with comments that tell all."""
    folders = (ROOT / "proto", ROOT / "third_party/proto", files("grpc_tools") / "_proto")
    sources = sorted(str(p.relative_to(ROOT / "proto")) for p in (ROOT / "proto").rglob("*.proto"))
    with tempfile.TemporaryDirectory() as scratch:
        image = Path(scratch) / "image.binpb"
        asked = ["--include_imports", "--include_source_info", f"--descriptor_set_out={image}"]
        if protoc.main(["protoc", *(f"-I{folder}" for folder in folders), *asked, *sources]) != 0:
            raise SystemExit("protoc failed; its message is above")
        return tell(image.read_bytes())


def plain_schemas(image: bytes) -> dict[str, str]:
    """The files of the API without rules, by name, and the one of others that they import."""
    found = descriptor_pb2.FileDescriptorSet.FromString(image).file
    owners = {name: file.name for file in found for name in _types_of(file)}
    own = (file for file in found if file.package == PACKAGE and file.name != _OPTIONS)
    plain = {file.name: _Printer(file, owners).text() for file in own}
    return plain | {SHIPPED: (ROOT / "third_party/proto" / SHIPPED).read_text()}


def _types_of(file: descriptor_pb2.FileDescriptorProto) -> Iterator[str]:
    """The names by which fields and RPCs know the types of a file."""
    yield from _below(f".{file.package}", file.message_type, file.enum_type)


def _below(
    outer: str,
    messages: Iterable[descriptor_pb2.DescriptorProto],
    enums: Iterable[descriptor_pb2.EnumDescriptorProto],
) -> Iterator[str]:
    yield from (f"{outer}.{enum.name}" for enum in enums)
    for message in messages:
        yield f"{outer}.{message.name}"
        yield from _below(f"{outer}.{message.name}", message.nested_type, message.enum_type)


class _Printer:
    """Writes a file's descriptor as a schema, in the form that `buf format` gives it.

    Knows what the API uses: proto3, no groups, no extensions but of options, which it leaves out,
    nothing reserved, no comments behind what they are about. A test compares what it wrote.

    Args:
        file: the file, with comments.
        owners: the names of the files that types are from, by the types' full names.
    """

    def __init__(self, file: descriptor_pb2.FileDescriptorProto, owners: dict[str, str]) -> None:
        self._file = file
        self._owners = owners
        self._places = {tuple(at.path): at for at in file.source_code_info.location}
        self._used: set[str] = set()

    def text(self) -> str:
        """The whole file."""
        file = self._file
        parts = [
            *((self._line(6, n), self._service(s, (6, n))) for n, s in enumerate(file.service)),
            *((self._line(5, n), self._enum(e, (5, n))) for n, e in enumerate(file.enum_type)),
            *(
                (self._line(4, n), self._message(m, (4, n)))
                for n, m in enumerate(file.message_type)
            ),
        ]
        parts.sort(key=lambda part: part[0])
        body = [line for _, lines in parts for line in ("", *lines)]
        head = [*self._comment((12,)), 'syntax = "proto3";', "", *self._comment((2,))]
        imports = sorted(self._used - {file.name})
        lines = [
            *head,
            f"package {file.package};",
            *([""] if imports else []),
            *(f'import "{name}";' for name in imports),
            "",
            *(f"option {said};" for said in sorted(_said(file.options))),
            *body,
        ]
        return "\n".join(lines) + "\n"

    def _line(self, *path: int) -> int:
        """Where in its file something begins."""
        return self._places[path].span[0]

    def _service(
        self, service: descriptor_pb2.ServiceDescriptorProto, path: _Path
    ) -> Iterator[str]:
        yield from self._comment(path)
        yield f"service {service.name} {{"
        for place, method in enumerate(service.method):
            if place:
                yield ""
            yield from _indented(self._rpc(method, (*path, 2, place)))
        yield "}"

    def _rpc(self, method: descriptor_pb2.MethodDescriptorProto, path: _Path) -> Iterator[str]:
        yield from self._comment(path)
        asks = ("stream " if method.client_streaming else "") + self._type(method.input_type)
        gets = ("stream " if method.server_streaming else "") + self._type(method.output_type)
        said = [f"  option {one};" for one in _said(method.options)]
        yield f"rpc {method.name}({asks}) returns ({gets})" + (" {" if said else ";")
        yield from (*said, "}") if said else ()

    def _enum(self, enum: descriptor_pb2.EnumDescriptorProto, path: _Path) -> Iterator[str]:
        yield from self._comment(path)
        yield f"enum {enum.name} {{"
        for place, value in enumerate(enum.value):
            yield from _indented(self._comment((*path, 2, place)))
            yield f"  {value.name} = {value.number};"
        yield "}"

    def _message(self, message: descriptor_pb2.DescriptorProto, path: _Path) -> Iterator[str]:
        yield from self._comment(path)
        inside = list(self._inside(message, path))
        yield f"message {message.name} {{" + ("" if inside else "}")
        yield from (*_indented(inside), "}") if inside else ()

    def _inside(self, message: descriptor_pb2.DescriptorProto, path: _Path) -> Iterator[str]:
        for place, enum in enumerate(message.enum_type):
            yield from (*self._enum(enum, (*path, 4, place)), "")
        maps = {one.name: one for one in message.nested_type if one.options.map_entry}
        for place, nested in enumerate(message.nested_type):
            if nested.name not in maps:
                yield from (*self._message(nested, (*path, 3, place)), "")
        opened = -1
        for place, field in enumerate(message.field):
            lines = self._field(field, maps, (*path, 2, place))
            chosen = field.HasField("oneof_index") and not field.proto3_optional
            if opened >= 0 and not (chosen and field.oneof_index == opened):
                yield "}"
                opened = -1
            if chosen and opened < 0:
                opened = field.oneof_index
                yield from self._comment((*path, 8, opened))
                yield f"oneof {message.oneof_decl[opened].name} {{"
            yield from _indented(lines) if chosen else lines
        if opened >= 0:
            yield "}"

    def _field(
        self,
        field: descriptor_pb2.FieldDescriptorProto,
        maps: dict[str, descriptor_pb2.DescriptorProto],
        path: _Path,
    ) -> Iterator[str]:
        yield from self._comment(path)
        entry = maps.get(field.type_name.rpartition(".")[2])
        if entry:
            key, value = map(self._type_of, entry.field)
            kind = f"map<{key}, {value}>"
        else:
            repeated = "repeated " if field.label == field.LABEL_REPEATED else ""
            optional = "optional " if field.proto3_optional else ""
            kind = f"{repeated}{optional}{self._type_of(field)}"
        said = ", ".join(_said(field.options))
        yield f"{kind} {field.name} = {field.number}" + (f" [{said}];" if said else ";")

    def _type_of(self, field: descriptor_pb2.FieldDescriptorProto) -> str:
        return self._type(field.type_name) if field.type_name else _SCALARS[field.type]

    def _type(self, name: str) -> str:
        """How the file names a type, whose file it then imports."""
        self._used.add(self._owners[name])
        return name.removeprefix(f".{PACKAGE}.").removeprefix(".")

    def _comment(self, path: _Path) -> Iterator[str]:
        place = self._places.get(path)
        if place is None:
            return
        for detached in place.leading_detached_comments:
            yield from (*_remark(detached), "")
        yield from _remark(place.leading_comments)


def _remark(comment: str) -> Iterator[str]:
    return (f"//{line}".rstrip() for line in comment.splitlines())


def _indented(lines: Iterable[str]) -> Iterator[str]:
    return (f"  {line}" if line else "" for line in lines)


def _said(options: Message) -> Iterator[str]:
    """The options that every generator knows, as they are written."""
    for field, value in options.ListFields():
        if field.is_extension:
            continue
        if field.type == Types.TYPE_STRING:
            escaped = value.replace("\\", "\\\\")
            yield f'{field.name} = "{escaped}"'
        elif field.type == Types.TYPE_ENUM:
            kind = field.enum_type
            assert kind is not None
            yield f"{field.name} = {kind.values_by_number[value].name}"
        elif field.type == Types.TYPE_BOOL:
            yield f"{field.name} = {str(value).lower()}"


def archive(texts: dict[str, bytes], folder: str) -> bytes:
    """A .tar.gz of these files in one folder; the same bytes whenever it is made."""
    packed = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=packed, mode="wb", mtime=0) as zipped,
        tarfile.open(fileobj=zipped, mode="w") as tar,
    ):
        for name, content in sorted(texts.items()):
            entry = tarfile.TarInfo(f"{folder}/{name}")
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return packed.getvalue()


def main(folder: Path) -> None:
    """Write both into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    image = compile_schemas()
    name = f"mneme-protos-{mneme.__version__}"
    texts = {file: text.encode() for file, text in plain_schemas(image).items()}
    texts["LICENSE"] = (ROOT / "LICENSE").read_bytes()
    (folder / f"mneme-{mneme.__version__}.binpb").write_bytes(image)
    (folder / f"{name}.tar.gz").write_bytes(archive(texts, name))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
