from __future__ import annotations

import threading
import webbrowser

import httpx2
import pytest
from mneme.messages import GetStatsResponse, ServerInfo
from unit.cli.command import mneme
from unit.client.scripted import ScriptedServer

KEY = "mn_a-key+with/signs"
SIGNED_IN = "#key=mn_a-key%2Bwith%2Fsigns"


@pytest.fixture
def serving(served: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> ScriptedServer:
    """A server that serves HTTP, too, and a machine with a browser for whoever asks."""
    says(served, "http://127.0.0.1:8080")
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.delenv("MNEME_API_KEY", raising=False)
    return served


def says(served: ScriptedServer, http_address: str) -> None:
    served.on("GetStats", GetStatsResponse(server=ServerInfo(http_address=http_address)))


def test_print_shows_the_address_with_the_key_in_its_fragment(serving: ScriptedServer) -> None:
    result = mneme("open", "--print", "--api-key", KEY)
    assert (result.out, result.code) == (f"http://127.0.0.1:8080/{SIGNED_IN}\n", 0)


def test_the_key_of_the_environment_signs_in(
    serving: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MNEME_API_KEY", KEY)
    assert mneme("open", "lessons", "--print").out == f"http://127.0.0.1:8080/lessons{SIGNED_IN}\n"


def test_without_a_key_there_is_none_in_the_address(serving: ScriptedServer) -> None:
    assert mneme("open", "/sessions/s-42", "--print").out == (
        "http://127.0.0.1:8080/sessions/s-42\n"
    )


def test_a_server_that_listens_everywhere_is_opened_where_it_is_called(
    serving: ScriptedServer,
) -> None:
    says(serving, "http://0.0.0.0:8099")
    assert mneme("open", "--print").out == "http://127.0.0.1:8099/\n"


def test_a_server_without_http_says_what_to_set(serving: ScriptedServer) -> None:
    says(serving, "")
    result = mneme("open", "--print")
    assert (result.code, result.out) == (2, "")
    assert "MNEME_HTTP_LISTEN" in result.err


def test_a_url_that_is_given_is_not_asked_for(serving: ScriptedServer) -> None:
    result = mneme("open", "--url", "https://mneme.example/", "--print", "--api-key", KEY)
    assert result.out == f"https://mneme.example/{SIGNED_IN}\n"
    assert serving.calls("GetStats") == []


def test_a_key_does_not_leave_the_machine_unencrypted_unless_that_is_allowed(
    serving: ScriptedServer,
) -> None:
    given = ("open", "--url", "http://mneme.example", "--print", "--api-key", KEY)
    refused = mneme(*given)
    assert (refused.code, refused.out) == (2, "")
    assert "--insecure" in refused.err
    assert mneme(*given, "--insecure").out == f"http://mneme.example/{SIGNED_IN}\n"


@pytest.mark.parametrize("url", ["mneme.example", "ftp://mneme.example", "javascript:alert(1)"])
def test_what_is_no_web_address_is_refused(serving: ScriptedServer, url: str) -> None:
    result = mneme("open", "--url", url)
    assert (result.code, result.out) == (2, "")
    assert "no address of a web page" in result.err


def test_a_folders_own_server_has_no_page(serving: ScriptedServer) -> None:
    result = mneme("open", "--local", "somewhere")
    assert result.code == 2
    assert "serves no HTTP" in result.err


def test_a_browser_is_led_to_the_page_without_the_key_among_its_arguments(
    serving: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    answers: list[httpx2.Response] = []
    browsers: list[threading.Thread] = []

    def visit(url: str) -> None:
        wrong = url.rpartition("/")[0] + "/wrong"
        answers.extend(httpx2.get(one, follow_redirects=False) for one in (wrong, url))

    def browse(url: str) -> bool:
        opened.append(url)
        browsers.append(threading.Thread(target=visit, args=(url,)))
        browsers[0].start()
        return True

    monkeypatch.setattr(webbrowser, "open", browse)
    result = mneme("open", "lessons", "--api-key", KEY)
    browsers[0].join()
    assert result.code == 0, result.err
    assert "opened http://127.0.0.1:8080/lessons" in result.err
    assert KEY not in result.err + result.out
    assert "mn_" not in opened[0]
    wrong, right = answers
    assert wrong.status_code == 404
    assert right.headers["location"] == f"http://127.0.0.1:8080/lessons{SIGNED_IN}"


def test_without_a_key_the_browser_gets_the_address_itself(
    serving: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", lambda url: opened.append(url) is None)
    assert mneme("open").code == 0
    assert opened == ["http://127.0.0.1:8080/"]


def test_where_there_is_no_browser_a_terminal_is_shown_the_address(
    serving: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webbrowser, "open", lambda url: False)
    result = mneme("open", "--api-key", KEY, terminal=True)
    assert result.code == 0
    assert result.out == f"http://127.0.0.1:8080/{SIGNED_IN}\n"
    assert "no browser" in result.err


def test_where_there_is_no_browser_a_log_is_not_shown_the_key(
    serving: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webbrowser, "open", lambda url: False)
    result = mneme("open", "--api-key", KEY)
    assert (result.code, result.out) == (2, "")
    assert "--print" in result.err
    assert "mn_" not in result.err
