import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atoll.core.model.errors import ErrorCode, InvalidInput
from atoll.core.model.paging import next_token, page_size, read_token

QUERY = ("jobs", "default", ("a",), None)


def test_a_token_leads_back_to_where_it_was_made() -> None:
    token = next_token(QUERY, [42, "node-1"])
    assert read_token(token, QUERY, shape=[int, str]) == [42, "node-1"]


@given(st.one_of(st.text(), st.binary().map(lambda data: base64.urlsafe_b64encode(data).decode())))
def test_what_is_no_token_is_refused(token: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        read_token(token, QUERY, shape=[int])
    assert raised.value.code is ErrorCode.BAD_PAGE_TOKEN


@pytest.mark.parametrize("other", [("jobs", "else", ("a",), None), ("jobs", "default", ("a",), 1)])
def test_a_token_of_another_query_is_refused(other: tuple[object, ...]) -> None:
    token = next_token(QUERY, [42])
    with pytest.raises(InvalidInput, match="another query"):
        read_token(token, other, shape=[int])


@pytest.mark.parametrize("last", [[1 << 63], [-1], ["a\0"], ["\ud800"], [1, 2], [True], [1.5], []])
def test_a_forged_place_never_reaches_the_store(last: list[int | str]) -> None:
    shape = [str] if last and isinstance(last[0], str) else [int]
    with pytest.raises(InvalidInput):
        read_token(next_token(QUERY, last), QUERY, shape=shape)


def test_sizes_of_pages() -> None:
    assert [page_size(asked) for asked in (0, 1, 1_000, 5_000)] == [100, 1, 1_000, 1_000]
