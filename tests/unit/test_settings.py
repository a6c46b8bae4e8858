"""Where settings come from, which win, and how a wrong one is reported."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from mneme_server.settings import Settings, SettingsError, load_settings, variable_of


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("MNEME_") or name == "OPENAI_API_KEY":
            monkeypatch.delenv(name)


def _file(folder: Path, text: str) -> Path:
    file = folder / "mneme.toml"
    file.write_text(text)
    return file


def _error(flags: dict[str, str], file: Path | None = None) -> str:
    with pytest.raises(SettingsError) as refused:
        load_settings(flags, file)
    return str(refused.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("listen", "127.0.0.1:50051"),
        ("http_listen", "127.0.0.1:8080"),
        ("http_origins", ""),
        ("metrics_listen", "127.0.0.1:9464"),
        ("data_dir", Path("mneme-data")),
        ("auth", "required"),
        ("admin_key", None),
        ("embedder", "local"),
        ("embed_queue_limit", 500_000),
        ("tenant_memory_bytes", None),
        ("max_streams", 1_000),
    ],
)
def test_without_any_setting_the_defaults_hold(name: str, value: object) -> None:
    assert getattr(load_settings({}, None), name) == value


def test_a_flag_beats_the_environment_which_beats_the_file_which_beats_the_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = _file(tmp_path, "workers = 50\nmax_streams = 5\nmax_uploads = 6\n")
    monkeypatch.setenv("MNEME_WORKERS", "60")
    monkeypatch.setenv("MNEME_MAX_STREAMS", "7")
    settings = load_settings({"workers": "70"}, file)
    assert (settings.workers, settings.max_streams, settings.max_uploads) == (70, 7, 6)
    assert settings.embed_threads == 2


def test_every_setting_has_a_description() -> None:
    assert all(field.description for field in Settings.model_fields.values())


def test_variables_that_clients_use_do_not_disturb_the_server(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MNEME_ADDRESS", "10.0.0.1:50051")
    monkeypatch.setenv("MNEME_API_KEY", "mn_x")
    load_settings({}, None)


def test_an_empty_variable_turns_metrics_off_and_leaves_optional_ones_unset(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("metrics_listen", "admin_key", "model_dir", "tls_cert"):
        monkeypatch.setenv(variable_of(name), "")
    settings = load_settings({}, None)
    assert settings.metrics_listen == ""
    assert (settings.admin_key, settings.model_dir, settings.tls_cert) == (None, None, None)


@pytest.mark.parametrize(
    "listen", ["127.0.0.1:1", "127.9.9.9:1", "[::1]:1", "localhost:1", "unix:/run/mneme.sock"]
)
def test_keys_may_be_turned_off_on_loopback(listen: str) -> None:
    assert load_settings({"auth": "disabled", "listen": listen}, None).auth == "disabled"


@pytest.mark.parametrize(
    "listen", ["0.0.0.0:1", "[::]:1", "10.0.0.5:1", "mneme.example.org:1", "localhost.evil.org:1"]
)
def test_keys_cannot_be_turned_off_where_others_can_reach_the_server(listen: str) -> None:
    message = _error({"auth": "disabled", "listen": listen})
    assert "MNEME_AUTH=disabled" in message
    assert listen in message


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ({"listen": "nowhere"}, "--listen is 'nowhere'"),
        ({"listen": "127.0.0.1:99999"}, "port of 0 to 65535"),
        ({"listen": "::1:50051"}, "brackets"),
        ({"metrics_listen": "x"}, "--metrics-listen is 'x'"),
        ({"http_listen": "8080"}, "--http-listen is '8080'"),
        ({"http_origins": "https://a.example, b.example"}, "'b.example' is no origin"),
        ({"http_origins": "https://a.example/path"}, "'https://a.example/path' is no origin"),
        ({"auth": "disabled", "http_listen": "0.0.0.0:1"}, "MNEME_HTTP_LISTEN=0.0.0.0:1"),
        ({"workers": "many"}, "--workers is 'many'"),
        ({"workers": "1"}, "greater than or equal to 6"),
        ({"auth": "off"}, "--auth is 'off': Input should be 'required' or 'disabled'"),
        ({"tls_cert": "a.pem"}, "MNEME_TLS_CERT and MNEME_TLS_KEY go together"),
        ({"tls_client_ca": "a.pem"}, "MNEME_TLS_CLIENT_CA needs"),
        ({"workers": "11", "max_uploads": "8"}, "embedder and others need one each"),
        ({"smtp_username": "müller"}, "it must be ASCII"),
        ({"smtp_password": "geheimnü"}, "it must be ASCII"),
    ],
)
def test_a_wrong_value_is_reported_by_name_with_what_it_should_be(
    flags: dict[str, str], expected: str
) -> None:
    assert expected in _error(flags)


def test_all_wrong_values_are_reported_by_the_source_that_set_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = _file(tmp_path, 'embed_batch = "big"\n')
    monkeypatch.setenv("MNEME_DRAIN_SECONDS", "soon")
    lines = _error({"workers": "many"}, file).splitlines()
    assert [line.split(" is ")[0] for line in lines] == [
        "--workers",
        "MNEME_DRAIN_SECONDS",
        f"{file}: embed_batch",
    ]


def test_an_unknown_name_in_the_file_is_an_error_with_a_guess(tmp_path: Path) -> None:
    message = _error({}, _file(tmp_path, 'log_levl = "debug"\nzzz = 1\n'))
    assert "unknown setting log_levl; did you mean log_level?" in message
    assert "unknown setting zzz" in message


@pytest.mark.parametrize("text", ["workers = ", "no toml at all", "workers = 1\nworkers = 2"])
def test_a_file_that_is_no_toml_is_an_error_that_names_it(tmp_path: Path, text: str) -> None:
    assert "mneme.toml: not valid TOML" in _error({}, _file(tmp_path, text))


def test_a_file_that_is_not_there_is_an_error_that_names_it(tmp_path: Path) -> None:
    assert "missing.toml: No such file" in _error({}, tmp_path / "missing.toml")


def test_secrets_are_masked_when_settings_are_printed_or_wrong() -> None:
    settings = load_settings({"admin_key": "do not show this", "openai_api_key": "sk-hidden"}, None)
    assert settings.admin_key is not None
    assert settings.admin_key.get_secret_value() == "do not show this"
    assert "do not show" not in repr(settings) + str(settings)
    assert "sk-hidden" not in repr(settings) + str(settings)


def test_a_secret_of_the_wrong_type_is_not_shown_in_the_error(tmp_path: Path) -> None:
    message = _error({}, _file(tmp_path, "admin_key = 1234567890123456\n"))
    assert "admin_key" in message
    assert "1234567890123456" not in message


@pytest.mark.parametrize(
    ("own", "generic", "expected"),
    [(None, None, None), (None, "sk-g", "sk-g"), ("sk-o", "sk-g", "sk-o"), ("sk-o", None, "sk-o")],
)
def test_openais_own_variable_serves_when_ours_is_not_set(
    monkeypatch: pytest.MonkeyPatch, own: str | None, generic: str | None, expected: str | None
) -> None:
    for variable, value in (("MNEME_OPENAI_API_KEY", own), ("OPENAI_API_KEY", generic)):
        if value is not None:
            monkeypatch.setenv(variable, value)
    key = load_settings({}, None).openai_api_key
    assert (key and key.get_secret_value()) == expected


@pytest.mark.parametrize(
    "second",
    [
        "postgresql://mneme:secret@db/mneme",
        "east=mysql://mneme:secret@db",
        "west=postgresql://mneme:secret@db",
        "East=postgresql://mneme:secret@db",
    ],
)
def test_a_database_without_a_name_of_its_own_is_told_by_its_place_and_never_its_password(
    second: str,
) -> None:
    refused = _error({"databases": f"west=postgresql://mneme:secret@db/mneme {second}"})
    assert "number 2 is no NAME=postgresql://" in refused
    assert "secret" not in refused


def test_databases_are_known_by_their_names() -> None:
    given = "west=postgresql://db/one?sslmode=require  east-2=postgres://db/two"
    assert load_settings({"databases": given}, None).named_databases == {
        "west": "postgresql://db/one?sslmode=require",
        "east-2": "postgres://db/two",
    }
