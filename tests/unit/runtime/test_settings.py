"""What an environment says, and what of it stops a start."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.domain.errors import InvalidArgument
from services.runtime.settings import load_settings

HOME = {"HOME": "/home/ann"}


def test_an_empty_environment_gives_the_embedded_brain_in_the_users_folder() -> None:
    settings = load_settings(HOME)

    assert settings.data == Path("/home/ann/.local/share/fleetbrain")
    assert settings.http.startswith("127.0.0.1:")
    assert (settings.nats_url, settings.embedder_url, settings.token, settings.log_level) == ("", "", "", "info")


@pytest.mark.parametrize(
    ("environ", "data"),
    [
        ({"FLEETBRAIN_DATA": "/srv/brain"}, "/srv/brain"),
        ({"XDG_DATA_HOME": "/xdg"}, "/xdg/fleetbrain"),
        ({"XDG_DATA_HOME": "relative"}, "/home/ann/.local/share/fleetbrain"),
        ({"FLEETBRAIN_DATA": ""}, "/home/ann/.local/share/fleetbrain"),
    ],
)
def test_the_data_folder_follows_the_variable_then_xdg_then_home(environ: dict[str, str], data: str) -> None:
    assert load_settings({**HOME, **environ}).data == Path(data)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("FLEETBRAIN_TYPO", "1"),
        ("FLEETBRAIN_DATABASE", "x"),
        ("FLEETBRAIN_LOG_LEVEL", "loud"),
        ("FLEETBRAIN_HTTP", "8080"),
        ("FLEETBRAIN_HTTP", "127.0.0.1:99999"),
        ("FLEETBRAIN_LISTEN", "host:port"),
        ("FLEETBRAIN_NATS_URL", "localhost:4222"),
        ("FLEETBRAIN_EMBEDDER_URL", "use"),
        ("FLEETBRAIN_VECTORS_URL", "ftp://x"),
        ("FLEETBRAIN_EMBEDDER_KEY_FILE", "/nowhere/at/all"),
    ],
)
def test_a_wrong_setting_is_refused_by_name_with_what_to_do(name: str, value: str) -> None:
    with pytest.raises(InvalidArgument) as raised:
        load_settings({**HOME, name: value})

    assert raised.value.field == name
    assert name in raised.value.message
    assert raised.value.next_step


@pytest.mark.parametrize(
    "name",
    [
        "FLEETBRAIN_TEST_ANYTHING",
        "FLEETBRAIN_SERVICE_HOST",
        "FLEETBRAIN_SEARCH_SERVICE_PORT",
        "FLEETBRAIN_SEARCH_SERVICE_PORT_GRPC",
        "FLEETBRAIN_SEARCH_PORT",
        "FLEETBRAIN_SEARCH_PORT_50051_TCP_ADDR",
        "PATH",
    ],
)
def test_what_tests_and_kubernetes_put_into_an_environment_is_let_be(name: str) -> None:
    load_settings({**HOME, name: "tcp://10.0.0.1:50051"})


@pytest.mark.parametrize("name", ["FLEETBRAIN_HTTP", "FLEETBRAIN_LISTEN"])
@pytest.mark.parametrize("address", ["0.0.0.0:7000", "[::]:7000", "10.0.0.4:7000", "127.evil.example:1"])
def test_an_address_that_others_reach_needs_a_token(name: str, address: str) -> None:
    with pytest.raises(InvalidArgument, match="no token"):
        load_settings({**HOME, name: address})

    load_settings({**HOME, name: address, "FLEETBRAIN_TOKEN": "secret"})


@pytest.mark.parametrize("address", ["127.0.0.1:0", "localhost:7000", "[::1]:7000", "127.1.2.3:7000"])
def test_loopback_needs_no_token(address: str) -> None:
    assert load_settings({**HOME, "FLEETBRAIN_HTTP": address}).http == address


def test_a_key_knows_where_it_came_from_and_is_never_shown(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("sk-from-file\n")
    openai = {**HOME, "FLEETBRAIN_EMBEDDER_URL": "openai://m?dim=8", "OPENAI_API_KEY": "sk-usual"}

    usual = load_settings({**openai, "OPENAI_BASE_URL": "http://localhost:1/v1"}).embedder_key
    named = load_settings({**openai, "FLEETBRAIN_EMBEDDER_KEY": "sk-own"}).embedder_key
    filed = load_settings({**openai, "FLEETBRAIN_EMBEDDER_KEY_FILE": str(file)}).embedder_key

    assert usual is not None
    assert named is not None
    assert filed is not None
    assert (usual.value, usual.origin, usual.base_url) == ("sk-usual", "OPENAI_API_KEY", "http://localhost:1/v1")
    assert (named.value, named.origin) == ("sk-own", "FLEETBRAIN_EMBEDDER_KEY")
    assert filed.value == "sk-from-file"
    assert str(file) in filed.origin
    assert "sk-" not in repr(load_settings(openai))


def test_a_provider_key_is_not_taken_for_an_embedder_that_needs_none() -> None:
    assert load_settings({**HOME, "OPENAI_API_KEY": "sk"}).embedder_key is None


def test_passwords_and_tokens_are_in_no_representation_and_no_error() -> None:
    settings = load_settings({**HOME, "FLEETBRAIN_TOKEN": "hush1", "FLEETBRAIN_NATS_URL": "nats://u:hush2@h:1"})

    assert "hush" not in repr(settings)
    with pytest.raises(InvalidArgument) as raised:
        load_settings({**HOME, "FLEETBRAIN_NATS_URL": "http://u:hush3@h:1"})
    assert "hush" not in raised.value.message + raised.value.value


def test_the_address_of_a_remote_embedder_is_read_only_where_one_is_asked() -> None:
    base = {"OPENAI_BASE_URL": "http://127.0.0.1:8080/v1/"}

    assert load_settings(HOME | base).embedder_base_url == ""
    remote = load_settings(HOME | base | {"FLEETBRAIN_EMBEDDER_URL": "openai://m?dim=8"})
    assert remote.embedder_base_url == "http://127.0.0.1:8080/v1"


@pytest.mark.parametrize("base", ["ftp://a/v1", "http://", "http://me:secret@a/v1", "a b", "https://a/v1?key=1"])
def test_an_address_of_a_remote_embedder_that_is_none_stops_the_start_without_its_password(base: str) -> None:
    with pytest.raises(InvalidArgument, match="OPENAI_BASE_URL") as caught:
        load_settings(HOME | {"FLEETBRAIN_EMBEDDER_URL": "openai://m?dim=8", "OPENAI_BASE_URL": base})
    assert "secret" not in f"{caught.value.message}{caught.value.value}"
