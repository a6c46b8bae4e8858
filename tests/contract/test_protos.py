"""What `make dist` writes for other languages says what the API's own files say, but for rules."""

from __future__ import annotations

import re
import tarfile
from importlib.resources import files
from pathlib import Path
from typing import Any

import protos
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from grpc_tools import protoc

PACKAGE = "mneme.v1"
OPTIONS = "mneme/v1/options.proto"
EXTENSION = FileDescriptorProto.EXTENSION_FIELD_NUMBER
OF_ALL = ("google/protobuf/", "google/rpc/status.proto")


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    protos.main(folder)
    return folder


@pytest.fixture(scope="module")
def original(dist: Path) -> dict[str, FileDescriptorProto]:
    """The API's files as in the descriptor set, by name."""
    (image,) = dist.glob("mneme-*.binpb")
    found = FileDescriptorSet.FromString(image.read_bytes()).file
    return {file.name: file for file in found}


@pytest.fixture(scope="module")
def plain(dist: Path) -> dict[str, FileDescriptorProto]:
    """The archive's files, compiled with nothing but protobuf's own types, by name."""
    (packed,) = dist.glob("mneme-protos-*.tar.gz")
    with tarfile.open(packed) as tar:
        tar.extractall(dist / "unpacked", filter="data")
    (folder,) = (dist / "unpacked").iterdir()
    assert f"{folder.name}.tar.gz" == packed.name
    names = sorted(str(path.relative_to(folder)) for path in folder.rglob("*.proto"))
    asked = [f"-I{folder}", f"-I{files('grpc_tools') / '_proto'}", "--include_source_info"]
    out = folder / "image"
    assert protoc.main(["protoc", *asked, f"--descriptor_set_out={out}", *names]) == 0
    return {file.name: file for file in FileDescriptorSet.FromString(out.read_bytes()).file}


def own(files: dict[str, FileDescriptorProto]) -> dict[str, FileDescriptorProto]:
    return {n: file for n, file in files.items() if file.package == PACKAGE and n != OPTIONS}


def without_rules(message: Any) -> None:
    """Take out of a descriptor the options that protobuf itself does not know."""
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        if field.name == "options":
            for option, _ in value.ListFields():
                if option.is_extension:
                    value.ClearExtension(option)
            value.DiscardUnknownFields()
            if not value.ListFields():
                message.ClearField("options")
        else:
            for one in value if field.is_repeated else [value]:
                without_rules(one)


def comments_of(file: FileDescriptorProto) -> dict[tuple[int, ...], list[str]]:
    """The comments of everything in a file, by the path of what they are about."""
    found = {
        tuple(at.path): [*at.leading_detached_comments, at.leading_comments, at.trailing_comments]
        for at in file.source_code_info.location
    }
    return {
        path: [re.sub(r" +$", "", comment, flags=re.MULTILINE) for comment in comments]
        for path, comments in found.items()
        if any(comments)
    }


def test_the_archives_files_compile_alone_and_import_nothing_of_rules(
    plain: dict[str, FileDescriptorProto],
) -> None:
    imported = {name for file in plain.values() for name in file.dependency}
    assert {n for n in imported if not n.startswith((*OF_ALL, "mneme/v1/"))} == set()
    assert OPTIONS not in imported
    assert "google/protobuf/descriptor.proto" not in imported


def test_the_archive_has_all_messages_fields_and_services_of_the_api(
    original: dict[str, FileDescriptorProto], plain: dict[str, FileDescriptorProto]
) -> None:
    assert sorted(own(plain)) == sorted(own(original))
    for name, file in own(original).items():
        expected, found = FileDescriptorProto(), FileDescriptorProto()
        for target, source in ((expected, file), (found, plain[name])):
            target.CopyFrom(source)
            without_rules(target)
            for left_out in ("dependency", "extension", "source_code_info"):
                target.ClearField(left_out)
        assert found == expected, name


def test_the_archive_keeps_every_comment(
    original: dict[str, FileDescriptorProto], plain: dict[str, FileDescriptorProto]
) -> None:
    for name, file in own(original).items():
        found = comments_of(plain[name])
        # Those of the extensions are not there.
        expected = {at: said for at, said in comments_of(file).items() if at[0] != EXTENSION}
        assert [at for at, said in expected.items() if found.get(at) != said] == [], name


def test_comments_say_what_the_rules_said(plain: dict[str, FileDescriptorProto]) -> None:
    comments = "".join(str(comments_of(file)) for file in plain.values())
    for said in ("Required; up to 8,192 characters", "Scope: write.", "Known: session_started"):
        assert said in comments


def test_the_descriptor_set_has_all_that_it_imports(
    original: dict[str, FileDescriptorProto],
) -> None:
    pool = descriptor_pool.DescriptorPool()
    for file in original.values():  # Each after those that it imports.
        pool.Add(file)  # type: ignore[no-untyped-call]
    assert pool.FindMethodByName("mneme.v1.RecallService.Recall")
    assert original["mneme/v1/recall_service.proto"].source_code_info.location
    assert descriptor_pb2.DESCRIPTOR.name in original


def test_both_are_the_same_whenever_they_are_made(dist: Path, tmp_path: Path) -> None:
    protos.main(tmp_path)
    for file in tmp_path.iterdir():
        assert file.read_bytes() == (dist / file.name).read_bytes(), file.name
