from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mneme.v1 import event_service_pb2 as pb
from mneme_server.common.errors import InvalidArgument, Reason
from mneme_server.edge.grpc.paging import Pages

Row = tuple[int, str]
ROWS = st.lists(
    st.tuples(st.integers(-(2**62), 2**62), st.text(max_size=12)), max_size=40, unique=True
).map(sorted)


def _page(rows: list[Row], request: pb.ListSessionsRequest) -> tuple[list[Row], str]:
    """Do what a servicer and a repository do."""
    pages = Pages(request)
    after = pages.after(int, str)
    rest = [row for row in rows if after is None or row > after]
    page, token = pages.cut(rest[: pages.size + 1], lambda last: last)
    return list(page), token


@given(ROWS, st.integers(1, 10))
def test_following_the_tokens_gives_every_row_once_and_in_order(rows: list[Row], size: int) -> None:
    seen: list[Row] = []
    token = ""
    while True:
        page, token = _page(rows, pb.ListSessionsRequest(page_size=size, page_token=token))
        seen += page
        if not token:
            break
        assert len(page) == size
    assert seen == rows


def _token(request: pb.ListSessionsRequest) -> str:
    sized = pb.ListSessionsRequest(page_size=2)
    sized.MergeFrom(request)
    _, token = Pages(sized).cut([(1, "a"), (2, "b"), (3, "c")], lambda last: last)
    assert token
    return token


def test_rows_that_arrive_before_the_place_do_not_move_it() -> None:
    rows = [(n, "") for n in range(10, 40, 10)]
    page, token = _page(rows, pb.ListSessionsRequest(page_size=2))
    rows = sorted([*rows, (5, "new"), (15, "new"), (25, "new")])
    rest, _ = _page(rows, pb.ListSessionsRequest(page_size=9, page_token=token))
    assert (page, rest) == ([(10, ""), (20, "")], [(25, "new"), (30, "")])


def test_another_page_size_may_go_on_with_the_token() -> None:
    token = _token(pb.ListSessionsRequest(project="p", page_size=2))
    request = pb.ListSessionsRequest(project="p", page_size=7, page_token=token)
    assert Pages(request).after(int, str) == (2, "b")


@pytest.mark.parametrize(
    "other",
    [
        pb.ListSessionsRequest(project="q"),
        pb.ListSessionsRequest(),
        pb.ListSessionsRequest(project="p", tags=["x"]),
        pb.ListEventsRequest(session_id="p"),
    ],
)
def test_a_token_of_other_filters_or_another_call_is_refused(
    other: pb.ListSessionsRequest | pb.ListEventsRequest,
) -> None:
    other.page_token = _token(pb.ListSessionsRequest(project="p"))
    with pytest.raises(InvalidArgument) as refused:
        Pages(other).after(int, str)
    assert refused.value.reason is Reason.INVALID_FILTER
    assert refused.value.field == "page_token"


@given(st.data())
def test_a_damaged_token_is_refused(data: st.DataObject) -> None:
    token = _token(pb.ListSessionsRequest())
    place = data.draw(st.integers(0, len(token) - 1))
    other = data.draw(st.characters(codec="utf-8").filter(lambda c: c != token[place]))
    damaged = token[:place] + other + token[place + 1 :]
    with pytest.raises(InvalidArgument):
        Pages(pb.ListSessionsRequest(page_token=damaged)).after(int, str)


@given(st.text(min_size=1))
def test_what_is_no_token_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgument):
        Pages(pb.ListSessionsRequest(page_token=text)).after(int, str)


def test_a_token_with_a_key_of_another_shape_is_refused() -> None:
    request = pb.ListSessionsRequest(page_token=_token(pb.ListSessionsRequest()))
    with pytest.raises(InvalidArgument):
        Pages(request).after(str)


@given(st.integers(), st.text())
def test_a_token_travels_in_a_url_as_it_is(number: int, text: str) -> None:
    _, token = Pages(pb.ListSessionsRequest(page_size=1)).cut(
        [(number, text)] * 2, lambda last: last
    )
    assert token.replace("-", "").replace("_", "").isalnum()


@pytest.mark.parametrize("character", ["x", '"', "\\", "é", "\N{PILE OF POO}"])
def test_a_token_after_the_longest_id_is_no_longer_than_a_request_may_carry(
    character: str,
) -> None:
    longest = character * 200
    rows = [(2**62, longest), (2**62, longest + "x")]
    _, token = Pages(pb.ListSessionsRequest(page_size=1)).cut(rows, lambda last: last)
    assert len(token) <= 2_000
    assert Pages(pb.ListSessionsRequest(page_token=token)).after(int, str) == rows[0]
