"""A field's rules, told in words."""

from __future__ import annotations

import pytest
from clientgen.reading import describe
from clientgen.telling import tell
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from unit.client.test_generator import HEAD, compiled

SCHEMA = (
    HEAD
    + r"""
// Tries limits.
service LimitService {
  // Tries.
  rpc Try(TryRequest) returns (TryResponse) {
    option idempotency_level = NO_SIDE_EFFECTS;
    option (required_scope) = KEY_SCOPE_READ;
  }
}
// How.
enum Way {
  // None.
  WAY_UNSPECIFIED = 0;
  // Up.
  WAY_UP = 1;
  // Down.
  WAY_DOWN = 2;
}
// A request.
message TryRequest {
  // A name.
  string name = 1 [(buf.validate.field).string = {
    min_len: 1
    max_len: 1200
    pattern: "^[^\\x00-\\x1f\\x7f]*$"
  }];
  // A text.
  string text = 2 [(buf.validate.field).string = {max_len: 9, pattern: "^[^\\x00]*$"}];
  // A code.
  string code = 3 [(buf.validate.field).string.pattern = "^[a-z]*$"];
  // A size.
  int32 size = 4 [
    (buf.validate.field).int32 = {gte: 0, lte: 1000},
    (default_value) = "50"
  ];
  // A share.
  optional double share = 5 [
    (buf.validate.field).double = {gte: 0, lte: 0.5},
    (default_value) = "0.25"
  ];
  // A count.
  int64 count = 6 [(buf.validate.field).int64 = {gte: 0, lte: 1000000000000}];
  // Another.
  int64 exact = 7 [(buf.validate.field).int64.lte = 9007199254740991];
  // Labels.
  repeated string tags = 8 [(buf.validate.field).repeated = {
    min_items: 1
    max_items: 64
    unique: true
    items: {string: {max_len: 100}}
  }];
  // When.
  google.protobuf.Timestamp time = 9 [(buf.validate.field).timestamp = {
    gte: {seconds: 0}
    lte: {seconds: 253402300799}
  }];
  // Way.
  Way way = 10 [(buf.validate.field).enum = {in: [0, 1, 2]}, (default_value) = "UP"];
  // Must be.
  Way must = 11 [(buf.validate.field).enum = {defined_only: true, not_in: [0]}];
  // Days.
  double days = 13 [(buf.validate.field).double = {gt: 0, lte: 7.5}];
  // A wait.
  google.protobuf.Duration wait = 14 [(buf.validate.field).duration = {
    gte: {}
    lte: {seconds: 60}
  }];
  // Free.
  string free = 12;
  // One of them.
  oneof which {
    // By name.
    string label = 15 [(buf.validate.field).string = {min_len: 1, max_len: 9}];
    // By number.
    int64 number = 16;
  }
}
// An answer.
message TryResponse {}
"""
)


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return compiled(tmp_path_factory.mktemp("limits"), SCHEMA)


def test_rules_and_defaults_are_told_in_words(image: bytes) -> None:
    (service,) = (one for one in describe(image).services if one.name == "LimitService")
    assert {field.name: field.limits for field in service.rpcs[0].fields} == {
        "name": "Required; up to 1,200 characters, on one line.",
        "text": "Up to 9 characters.",
        "code": "Of the form `^[a-z]*$`.",
        "size": "1 to 1,000. Default: 50.",
        "share": "0 to 0.5. Default: 0.25.",
        "count": "0 to 10^12.",
        "exact": "At most 2^53 - 1.",
        "tags": "Required; up to 64 entries, each up to 100 characters; none twice.",
        "time": "From 1970 to 9999.",
        "way": "UP or DOWN. Default: UP.",
        "must": "Required.",
        "days": "More than 0 and at most 7.5.",
        "wait": "At least 0 and at most 60 seconds.",
        "free": "",
        "label": "Up to 9 characters.",
        "number": "",
    }


def test_they_follow_the_comment_wherever_it_is_shown(image: bytes) -> None:
    (service,) = (one for one in describe(tell(image)).services if one.name == "LimitService")
    comments = {field.name: " ".join(field.comment.split()) for field in service.rpcs[0].fields}
    assert comments["size"] == "A size. 1 to 1,000. Default: 50."
    assert comments["free"] == "Free."


def test_telling_changes_nothing_but_comments(image: bytes) -> None:
    before, after = FileDescriptorSet.FromString(image), FileDescriptorSet.FromString(tell(image))
    assert before != after
    for file in (*before.file, *after.file):
        file.ClearField("source_code_info")
    assert before == after
