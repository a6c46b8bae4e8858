from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mneme_server.common.masking import MAX_TEMPLATE, NO_MESSAGE, template_of


@pytest.mark.parametrize(
    ("message", "template"),
    [
        (
            "Error: payment amount does not add up, total price is 375, but paid 299",
            "Error: payment amount does not add up, total price is <num>, but paid <num>",
        ),
        (
            "Error: flight HAT045 not available on date 2024-05-19",
            "Error: flight <id> not available on date <date>",
        ),
        (
            "Error: payment method certificate_7504069 not found",
            "Error: payment method <id> not found",
        ),
        ("user mia_li_3668 is gone", "user <id> is gone"),
        ("job 123e4567-e89b-12d3-a456-426614174000 died", "job <id> died"),
        ("at 0x7ffdeadbeef and 9f86d081884c", "at <id> and <id>"),
        ("since 2026-05-19T10:00:00.123Z", "since <date>"),
        ("at 10:15:30 on 3/4/2026", "at <date> on <date>"),
        ("KeyError: 'user_id'", "KeyError: <str>"),
        ('no table "bookings" here', "no table <str> here"),
        ("run `make setup` first", "run <str> first"),
        ("cannot open /var/lib/x/y.json: denied", "cannot open <path>: denied"),
        ("C:\\Users\\me\\x.txt is locked", "<path> is locked"),
        ("src/app/main.py:12: bad", "<path>: bad"),
        ("mail to bob.b@example.com bounced", "mail to <email> bounced"),
        ("GET https://api.example.com/v1/7?x=1 failed", "GET <url> failed"),
        ("10.0.0.17:8443 refused", "<id> refused"),
        ("took 1500ms, then 3.5 s", "took <num>ms, then <num> s"),
        ("$1,234.56 is 12% off", "<num> is <num>% off"),
        ("-5 is below 0", "<num> is below <num>"),
        ("  two \n lines\tof text ", "two lines of text"),
    ],
)
def test_what_varies_becomes_a_placeholder(message: str, template: str) -> None:
    assert template_of(message) == template


@pytest.mark.parametrize(
    "message",
    [
        "can't open the door: it isn't there",
        "choose and/or leave",
        "sha256 and utf-8 do not fit int32 or base64",
        "HTTP 404",
        "HTTP/1.1 503 came back",
        "status code: 500",
        "exit code 137",
        "[Errno 2] no such file",
    ],
)
def test_what_names_the_kind_of_failure_stays(message: str) -> None:
    assert template_of(message) == message


_PYTHON = 'Traceback (most recent call last):\n  File "/x.py", line 3, in f\n    g()\n    ~^^\n'


@pytest.mark.parametrize(
    ("trace", "template"),
    [
        (f"{_PYTHON}ValueError: bad 7", "ValueError: bad <num>"),
        (f"Exit code 1\n{_PYTHON}ValueError: bad 7\n", "ValueError: bad <num>"),
        (f"{_PYTHON}KeyError: 3\n\nMeanwhile:\n\n{_PYTHON}OSError: no", "OSError: no"),
        (
            f"{_PYTHON}ValidationError: 1 error for Order\nname\n  Field required\n"
            "    For further information visit https://errors.example.com/v",
            "ValidationError: <num> error for Order",
        ),
        ("Traceback (most recent call last):\n  File", "File"),
        (
            "TypeError: x is not a function\n    at run (/a.js:10:3)\n    at main (/m.js:2:1)",
            "TypeError: x is not a function",
        ),
        (
            "java.lang.IllegalStateException: closed\n\tat com.example.Pool.take(Pool.java:31)\n"
            "Caused by: java.io.IOException: reset\n\t... 3 more",
            "java.lang.IllegalStateException: closed",
        ),
        ("panic: nil map\n\ngoroutine 1 [running]:\nmain.main()\n\t/m.go:4", "panic: nil map"),
        ("boom (RuntimeError)\n\tfrom app.rb:4:in `run'", "boom (RuntimeError)"),
    ],
)
def test_of_a_stack_trace_counts_what_names_the_exception(trace: str, template: str) -> None:
    assert template_of(trace) == template


def test_the_frames_of_a_stack_trace_do_not_tell_errors_apart() -> None:
    frames = [f"\n    at {name} (/srv/{name}.js:1:2)" for name in ("load", "save", "main")]
    errors = {f"TypeError: x is not a function{frame}" for frame in frames}
    assert len({template_of(error) for error in errors}) == 1


def test_a_message_without_words_has_a_template_too() -> None:
    assert template_of(" \n ") == NO_MESSAGE


@pytest.mark.parametrize(
    "form",
    [
        "connection to {} refused",
        "login of {} failed",
        "no route to {}: giving up",
        "{} is not in the group of {}",
    ],
)
def test_errors_that_differ_in_a_host_a_user_or_a_name_are_one_pattern(form: str) -> None:
    names = (
        "host-0", "host-3", "web12", "bob42", "db1", "10.0.0.17", "api.example.com:8443",
        "worker-7f9c", "eu-west-1", "node_12", "x1", "0047_channel", "redis-0.redis.svc",
        "8f3a1c2e",
    )  # fmt: skip
    assert {template_of(form.format(name, name)) for name in names} == {form.format("<id>", "<id>")}


@pytest.mark.parametrize(
    "messages",
    [
        ("HTTP 404 from the server", "HTTP 500 from the server"),
        ("cannot read the file", "cannot write the file"),
        ("permission denied", "permission granted"),
        ("unknown column price", "unknown column name"),
        ("sha256 does not match", "md5 does not match", "sha1 does not match"),
        ("ORA-00942: not allowed", "ORA-00001: not allowed"),
        ("error TS2345: bad type", "error TS2551: bad type"),
        ("error[E0308]: mismatched", "error[E0502]: mismatched"),
        ("SQLSTATE[23505] failed", "SQLSTATE[40001] failed"),
        ("exit code 1", "exit code 137"),
        ("the ipv4 address is bad", "the ipv6 address is bad"),
        ("ASP.NET is missing", "System.IO is missing"),
    ],
)
def test_different_errors_stay_apart(messages: tuple[str, ...]) -> None:
    assert len({template_of(message) for message in messages}) == len(messages)


_PIECES = st.sampled_from(
    ("'", '"', "`", "<num>", "<id>", "abc", "abc1", "12", "/a/b", "://", "a@b.c", ".", ":", "-",
     " ", "2026-01-02", "10.0.0.1", "0x1f", "“", "”", "error ", "E12", "]", "HTTP 404",
     "a.example.com")
)  # fmt: skip


@given(st.lists(_PIECES, max_size=40).map("".join) | st.text(max_size=300))
def test_the_template_of_a_template_is_itself(message: str) -> None:
    template = template_of(message)
    assert template_of(template) == template


@given(st.text(max_size=300))
def test_any_message_has_a_short_template_and_always_the_same(message: str) -> None:
    template = template_of(message)
    assert 0 < len(template) <= MAX_TEMPLATE
    assert template_of(message) == template


@given(st.integers(0, 10**12), st.integers(0, 10**12), st.dates())
def test_messages_that_differ_in_their_values_share_a_template(a: int, b: int, day: object) -> None:
    message = "total is {}, but paid {} on {}"
    assert template_of(message.format(a, b, day)) == "total is <num>, but paid <num> on <date>"


def test_a_long_hostile_message_is_masked_in_no_time() -> None:
    # Nested quantifiers would need longer than the universe exists for one of these.
    for piece in ("a-", "1.", "/a", "'", "a@", "0a", "ab:1_"):
        assert template_of(piece * 20_000)
