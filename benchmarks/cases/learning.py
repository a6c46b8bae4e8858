"""Learning: asking, telling and training, alone and beside each other."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
from google.protobuf.struct_pb2 import Struct
from mneme import MnemeClient
from mneme.messages import NewEvent
from mneme.v1 import learning_pb2
from mneme.v1 import learning_service_pb2 as pb

from benchmarks.context import Context
from benchmarks.measure import Round, Rounds, time_calls
from benchmarks.report import Row, at_most, at_rate, in_time, milliseconds
from benchmarks.server import Server
from benchmarks.texts import questions

_ACTIONS = ["ask_first", "write_tests", "search", "just_do_it"]
_KINDS = ["auth", "ui", "db", "infra"]
_BOX = learning_pb2.Space(box=learning_pb2.BoxSpace(low=[-1.0] * 8, high=[1.0] * 8))
_FORCE = learning_pb2.Space(box=learning_pb2.BoxSpace(low=[-1.0], high=[1.0]))
_LABELS = learning_pb2.Space(discrete=learning_pb2.DiscreteSpace(labels=_ACTIONS))
_PREDICT_MS, _FEEDBACK_MS, _SHAPE_MS, _EXPLAIN_MS = 5.0, 10.0, 3.0, 50.0
_METRICS_MS, _START_MS, _END_MS, _TRANSFER_MS = 20.0, 100.0, 1_000.0, 2_000.0
_RECORD_MS = 5.0
_DISCRETE = ("dqn", "actor_critic", "ppo", "a3c", "decision_transformer")
_CONTINUOUS = ("ddpg", "td3", "sac")
_A_MESSAGE, _PREDICTIONS, _TRANSITIONS = 64, 10_000, 1_000
_TRAIN_MS, _TRANSFORM_MS, _TRAIN_STEPS, _RECALL_TIMES = 1_000.0, 5_000.0, 100, 2.0


def run(context: Context) -> list[Row]:
    """Measure the calls of a session that knows some hundred rewards, and training of others."""
    # StartLearningSession is called more often than a tenant may have sessions.
    settings = {"learning_sessions": "100000"}
    with Server(context.work / "learning", settings) as server:
        client = server.tenant("learning", scopes=["read", "write", "learn"])
        _bandit(client, "bandit")
        rows = _calls(context, server, client)
        rows.append(_acted(context, server, client))
        rows.append(_recorded(context, client))
        rows += _trained(client)
        rows += _beside_training(context, server, client)
    return rows


def _state(number: int) -> learning_pb2.State:
    made = Struct()
    made.update({"task_type": _KINDS[number % 4], "complexity": number % 10 / 10})
    return learning_pb2.State(json=made)


def _bandit(client: MnemeClient, session: str) -> None:
    client.start_learning_session("linucb", session_id=session, action_space=_LABELS)
    for number in range(300):
        made = client.predict(session, _state(number), explore=True).prediction
        reward = float(made.action.label == _ACTIONS[number % 4])
        client.feedback(prediction_id=made.prediction_id, reward=reward)


def _calls(context: Context, server: Server, client: MnemeClient) -> list[Row]:
    numbers = itertools.count()

    def fed_back(_number: int) -> None:
        client.feedback(
            session_id="bandit", state=_state(next(numbers)), action={"label": "search"}, reward=0.5
        )

    def recorded(number: int) -> None:
        client.record_experience("bandit", _steps(1))

    def shaped(number: int) -> None:
        client.shape_reward("bandit", _state(number), extrinsic_reward=1.0)

    def started(number: int) -> None:
        client.start_learning_session("linucb", session_id=f"started-{next(numbers)}-{number}")

    measured: list[tuple[str, float, Callable[[int], object]]] = [
        ("Predict", _PREDICT_MS, lambda n: client.predict("bandit", _state(n))),
        ("Feedback, learned within the call", _FEEDBACK_MS, fed_back),
        ("RecordExperience of one transition", _RECORD_MS, recorded),
        ("ShapeReward", _SHAPE_MS, shaped),
        ("Explain", _EXPLAIN_MS, lambda n: client.explain("bandit", _state(n))),
        ("GetLearningMetrics", _METRICS_MS, lambda _: client.get_learning_metrics("bandit")),
        ("StartLearningSession", _START_MS, started),
    ]
    rows = [_row(what, budget, _rounds(context, server, call)) for what, budget, call in measured]
    for number in range(5):
        _bandit(client, f"ends-{number}")
    client.start_learning_session("linucb", session_id="target", action_space=_LABELS)

    def transferred(_number: int) -> None:
        client.transfer("bandit", "target", similarity_threshold=0.0)

    def ended(number: int) -> None:
        client.end_learning_session(f"ends-{number}")

    five = range(5)
    rows.append(_row("Transfer of linucb", _TRANSFER_MS, Rounds([time_calls(transferred, five)])))
    rows.append(
        _row("EndLearningSession, with its file", _END_MS, Rounds([time_calls(ended, five)]))
    )
    return rows


def _rounds(context: Context, server: Server, call: Callable[[int], object]) -> Rounds:
    return context.rounds(call, lambda: range(context.sizes.calls), cpu_s=server.cpu_s)


def _row(what: str, budget_ms: float, found: Rounds, how: str = "one call at a time") -> Row:
    if found.cpu_ms is not None:
        how = f"{how}; the server's processor time: {milliseconds(found.cpu_ms)}"
    return Row(
        what=what,
        budget=f"p95 ≤ {milliseconds(budget_ms)}",
        measured=f"p50 {milliseconds(found.p50_ms)}, p95 {milliseconds(found.p95_ms)}",
        verdict=in_time(found.p95_ms, budget_ms),
        how=how,
        figures=found.figures(),
    )


def _acted(context: Context, server: Server, client: MnemeClient) -> Row:
    states = [pb.ActState(state=_state(n)) for n in range(_A_MESSAGE)]
    client.start_learning_session("q_learning", session_id="acts", action_space=_LABELS)
    client.record_experience("acts", _steps(200))
    request = pb.ActRequest(session_id="acts", states=states, without_feedback=True)
    count = max(1, context.sizes.calls)
    answered: list[int] = []

    def ask(_round: int) -> None:
        with client.act(itertools.repeat(request, count)) as answers:
            answered.append(sum(len(answer.predictions) for answer in answers))

    before = server.cpu_s()
    rounds = [time_calls(ask, [number]) for number in range(context.sizes.rounds)]
    used_us = (server.cpu_s() - before) / sum(answered) * 1e6
    rates = sorted(made / round_.seconds for made, round_ in zip(answered, rounds, strict=True))
    rate = rates[len(rates) // 2]
    return Row(
        what=f"Act, {_A_MESSAGE} states a message",
        budget=f"≥ {_PREDICTIONS:,}/s",
        measured=f"{rate:,.0f} predictions/s",
        verdict=at_rate(rate, _PREDICTIONS),
        how=f"q_learning, one stream; the server's processor time for each: {used_us:.0f} µs",
        figures={"per_second": rate, "server_cpu_us": used_us},
    )


def _steps(count: int) -> list[learning_pb2.Experience]:
    return [
        learning_pb2.Experience(
            state=_state(number),
            action=learning_pb2.Action(label=_ACTIONS[number % 4]),
            reward=number % 3 / 2,
            terminated=True,
        )
        for number in range(count)
    ]


def _recorded(context: Context, client: MnemeClient) -> Row:
    client.start_learning_session("q_learning", session_id="recorded", action_space=_LABELS)
    count = max(10, context.sizes.calls)
    steps = _steps(100)
    requests = [
        pb.RecordTrajectoriesRequest(session_id="recorded", trajectory_id=f"t{n}", steps=steps)
        for n in range(count)
    ]

    def record(_number: int) -> None:
        with client.record_trajectories(requests) as answers:
            for _ in answers:
                pass

    took = time_calls(record, [0]).seconds
    rate = count * len(steps) / took
    return Row(
        what="RecordTrajectories, 100 steps each",
        budget=f"≥ {_TRANSITIONS:,}/s",
        measured=f"{rate:,.0f} transitions/s",
        verdict=at_rate(rate, _TRANSITIONS),
        how="durable and learned by q_learning",
        figures={"per_second": rate},
    )


def _point(values: list[float]) -> learning_pb2.State:
    return learning_pb2.State(numbers=learning_pb2.Numbers(values=values))


def _force(number: int) -> learning_pb2.Action:
    return learning_pb2.Action(numbers=learning_pb2.Numbers(values=[number % 5 / 2 - 1]))


def _network(client: MnemeClient, algorithm: str) -> None:
    """Start a session of an algorithm with networks, and tell it episodes to learn from."""
    continuous = algorithm in _CONTINUOUS
    client.start_learning_session(
        algorithm, session_id=algorithm, config={"batch_size": 32}, state_space=_BOX,
        action_space=_FORCE if continuous else _LABELS,
    )  # fmt: skip
    chance = np.random.default_rng(0)
    for number in range(20):
        states = chance.uniform(-1, 1, (51, 8)).tolist()
        steps = [
            learning_pb2.Experience(
                state=_point(states[place]),
                next_state=_point(states[place + 1]),
                action=_force(place)
                if continuous
                else learning_pb2.Action(label=_ACTIONS[place % 4]),
                reward=float(place % 2),
                terminated=place == 49,
                probability=0.25,
            )
            for place in range(50)
        ]
        client.record_experience(algorithm, steps, trajectory_id=f"t{number}")


def _trained(client: MnemeClient) -> list[Row]:
    rows = []
    for algorithm in (*_DISCRETE, *_CONTINUOUS):
        budget = _TRANSFORM_MS if algorithm == "decision_transformer" else _TRAIN_MS
        _network(client, algorithm)

        def train(_number: int, session: str = algorithm) -> None:
            for _ in client.train(session, num_steps=_TRAIN_STEPS):
                pass

        train(0)  # The process begins and loads torch.
        found = Rounds([time_calls(train, range(3))])
        what = f"Train, {_TRAIN_STEPS} steps of {algorithm} at batch 32"
        rows.append(_row(what, budget, found))
    return rows


def _beside_training(context: Context, server: Server, client: MnemeClient) -> list[Row]:
    texts = questions(200, seed=3)
    client.record_events(
        [NewEvent(session_id="talk", event_type="message", text=text) for text in texts],
        wait_indexed=True,
    )
    asked = list(itertools.islice(itertools.cycle(questions(50)), context.sizes.calls))

    def recalled(text: str) -> None:
        client.recall(text)

    alone = time_calls(recalled, asked)
    with _training(client, "dqn"):
        predicted = _rounds(context, server, lambda n: client.predict("bandit", _state(n)))
        beside = time_calls(recalled, asked)
    times = beside.p95_ms / alone.p95_ms
    return [
        _row("Predict while another session trains", _PREDICT_MS, predicted, "dqn trains"),
        Row(
            what="Recall while a session trains",
            budget=f"p95 ≤ {_RECALL_TIMES:g} times that without",
            measured=f"p95 {milliseconds(beside.p95_ms)}, {times:.1f} times",
            verdict=at_most(times, _RECALL_TIMES),
            how="dqn trains beside it, without a pause",
            figures={"times": times, **_p95s(alone, beside)},
        ),
    ]


def _p95s(alone: Round, beside: Round) -> dict[str, float]:
    return {"alone_p95_ms": alone.p95_ms, "beside_p95_ms": beside.p95_ms}


@contextmanager
def _training(client: MnemeClient, session: str) -> Iterator[None]:
    """Have a session train without a pause while the block runs."""
    over = threading.Event()

    def train() -> None:
        while not over.is_set():
            with client.train(session, num_steps=10_000) as messages:
                for _ in messages:
                    if over.is_set():
                        break

    thread = threading.Thread(target=train)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
