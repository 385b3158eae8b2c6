"""Page tokens go back where they came from, and nowhere else."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.domain.errors import InvalidArgument
from services.runtime.pages import decode_page_token, encode_page_token

words = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
arguments = st.dictionaries(words, words, max_size=4)


@given(words, arguments)
def test_a_token_gives_back_its_position_to_the_same_call(position: str, given_arguments: dict[str, str]) -> None:
    token = encode_page_token(position, given_arguments)

    assert decode_page_token(token, dict(reversed(given_arguments.items()))) == position
    assert token.isascii()


@given(words, arguments, arguments)
def test_a_token_of_another_call_is_refused(position: str, made: dict[str, str], used: dict[str, str]) -> None:
    if made == used:
        return

    with pytest.raises(InvalidArgument) as raised:
        decode_page_token(encode_page_token(position, made), used)

    assert raised.value.reason == "PAGE_TOKEN_INVALID"


@given(st.text(min_size=1) | st.binary(min_size=1).map(lambda raw: base64.urlsafe_b64encode(raw).decode()))
def test_what_is_no_token_is_refused_by_name(token: str) -> None:
    with pytest.raises(InvalidArgument) as raised:
        decode_page_token(token, {"a": "b"})

    assert raised.value.field == "page_token"


def test_no_token_is_the_beginning() -> None:
    assert decode_page_token("", {"a": "b"}) == ""
