from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.domain.errors import InvalidArgument
from services.runtime.engine_url import EngineUrl, parse_engine_url

NAME = "FLEETBRAIN_LEXICAL_URL"
SCHEMES = frozenset({"opensearch", "opensearch+tls"})


def parse(text: str) -> EngineUrl:
    return parse_engine_url(NAME, text, SCHEMES, 9200, parameters=frozenset({"ca"}))


def test_hosts_credentials_prefix_and_parameters_are_read() -> None:
    url = parse("opensearch+tls://us%40er:p%2Fw@a:1,b,[::1]:3/team?ca=/etc/ca.pem")
    assert url.hosts == (("a", 1), ("b", 9200), ("::1", 3))
    assert url.password is not None
    assert (url.user, url.password.value, url.path, url.query) == ("us@er", "p/w", "team", {"ca": "/etc/ca.pem"})


def test_prefix_and_port_have_defaults() -> None:
    url = parse("opensearch://host")
    assert (url.hosts, url.path, url.user, url.password) == ((("host", 9200),), "fleetbrain", "", None)


@pytest.mark.parametrize(
    "rest",
    ["", "/p", "host:99999", "host:x", "a,,b", "host/UPPER", "host/a/b", "host?x=1", "h st", "host/p#f", "hush/x@host"],
)
def test_what_cannot_be_used_is_refused_without_its_credentials(rest: str) -> None:
    text = f"opensearch://{rest}" if "@" in rest else f"opensearch://user:hush@{rest}"
    with pytest.raises(InvalidArgument) as caught:
        parse(text)
    assert caught.value.field == NAME
    assert "hush" not in f"{caught.value.message} {caught.value.value}"


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(InvalidArgument):
        assert parse(f"opensearch://{text}").hosts
