"""Equal servers on one PostgreSQL: a learning session learns on all of them, each step once."""

from __future__ import annotations

import threading
from functools import partial
from pathlib import Path

from mneme.v1 import auth_pb2
from support.learning import Session, discrete, plain
from support.nodes import eventually, patiently
from support.server import LocalServer, ServerProcess, server_process

LEARN = (auth_pb2.KEY_SCOPE_READ, auth_pb2.KEY_SCOPE_WRITE, auth_pb2.KEY_SCOPE_LEARN)


def best(session: Session) -> str:
    """What a session does, as it has learned, where left is right."""
    return str(plain(patiently(lambda: session.predict("left")).action))


def taught(session: Session, right: str, times: int = 20) -> None:
    for _ in range(times):
        for done in ("go", "stay"):
            patiently(partial(session.tell, "left", done, 1.0 if done == right else 0.0))


def test_a_session_predicts_on_each_server_what_it_was_told_by_way_of_any(
    two: tuple[LocalServer, LocalServer],
) -> None:
    one, other = two
    here = Session(
        one.keys.tenant("acme", *LEARN),
        "q_learning",
        action_space=discrete(labels=["go", "stay"]),
        state_space=discrete(labels=["left"]),
    )
    taught(here, "go")
    there = Session.known(other.keys.key("acme-1", *LEARN))
    eventually(lambda: best(there) == "go", "the other server has not learned it")
    assert patiently(there.metrics).transitions == 40
    prediction = there.predict("left")
    taught(there, "stay", times=100)
    patiently(partial(there.reward, prediction.prediction_id, 0.0))
    assert best(there) == "stay"
    eventually(lambda: best(here) == "stay", "the first server has not learned it")
    patiently(partial(here.tell, "left", "stay", 1.0))
    assert patiently(here.stored).transitions == 242, "nothing was lost, or recorded twice"


def test_two_servers_that_are_told_at_once_record_each_step_once(
    two: tuple[LocalServer, LocalServer],
) -> None:
    one, other = two
    here = Session(one.keys.tenant("acme", *LEARN), "q_learning", action_space=discrete(2))
    there = Session.known(other.keys.key("acme-1", *LEARN))

    def tell(session: Session, name: str) -> None:
        for number in range(8):
            told = partial(session.tell, {"at": name}, 0, 1.0, feedback_id=f"{name}{number}")
            patiently(told)

    threads = [threading.Thread(target=tell, args=one_of) for one_of in ((here, "a"), (there, "b"))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert patiently(here.stored).transitions == 16
    assert patiently(there.stored).transitions == 16


def test_the_sessions_of_a_server_that_died_another_goes_on_with(tmp_path: Path, url: str) -> None:
    killed = ServerProcess(tmp_path / "killed", database_url=url)
    with server_process(tmp_path / "left", database_url=url) as left:
        here = Session(killed.keys.tenant("acme", *LEARN), "q_learning", action_space=discrete(2))
        there = Session.known(left.keys.key("acme-1", *LEARN))
        for number in range(5):
            here.tell({"at": "a"}, 0, 1.0, feedback_id=f"a{number}")
        killed.kill()
        patiently(partial(there.tell, {"at": "a"}, 0, 1.0, feedback_id="b"))
        assert patiently(there.stored).transitions == 6
        assert patiently(there.metrics).updates == 6
