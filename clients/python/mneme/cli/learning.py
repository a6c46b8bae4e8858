"""`mneme learning`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from mneme._generated.choices import LearningStatusChoice
from mneme.cli import cells
from mneme.cli.app import App, Cli
from mneme.cli.exits import InputError
from mneme.cli.fields import Fields, choice, text
from mneme.cli.learning_importing import import_
from mneme.cli.learning_models import download
from mneme.cli.learning_values import setting, space, value
from mneme.cli.options import Yes
from mneme.cli.output import Column
from mneme.cli.resources import Resource

if TYPE_CHECKING:
    from mneme.client import MnemeClient
    from mneme.types import GetLearningMetricsResponse

app = App(help="Learn from rewards which action works in which situation.")

_MAX_PAGE = 500
_VALUE = "JSON, or a label as it is"
_EVALUATION_S = 120.0

SessionId = Annotated[str, typer.Argument(metavar="SESSION", help="The learning session's id.")]
Actor = Annotated[
    str | None, typer.Option(metavar="ID", help="Whose episode it is, if several are under way.")
]


@app.command()
def algorithms(
    cli: Cli,
    *,
    name: Annotated[
        str | None, typer.Argument(metavar="[ALGORITHM]", help="Show this one with its keys.")
    ] = None,
) -> None:
    """List the algorithms, or show one with the keys of its config."""
    with cli.connect() as client:
        answer = client.list_algorithms(algorithm=name)
    if cli.out.as_json:
        cli.out.message(answer)
        return
    from mneme.cli import learning_views as views

    if name is None:
        cli.out.table(views.ALGORITHMS, [views.algorithm_row(one) for one in answer.algorithms])
        return
    for found in answer.algorithms:
        cli.out.facts(views.algorithm_facts(found))
        cli.out.line("")
        cli.out.table(views.KEYS, [views.key_row(key) for key in found.keys])


_sessions = Resource(
    app,
    columns=(
        Column("Session", "id", style="cyan"),
        Column("Algorithm", "algorithm"),
        Column("Status", "status", optional=2),
        Column("Steps", "transitions", right=True),
        Column("Episodes", "episodes_completed", right=True, optional=1),
        Column(
            "Mean reward",
            lambda it: f"{it.avg_reward:.4g}" if it.episodes_completed else "",
            right=True,
        ),
        Column("Updated", "updated_at", style="dim", optional=3),
    ),
)
_sessions.list(
    "iter_learning_sessions",
    "List learning sessions, most recently started first.",
    Fields(
        algorithm=text("With this algorithm.", metavar="NAME"),
        status=choice(LearningStatusChoice),
    ),
    most=_MAX_PAGE,
)


@app.command()
def show(cli: Cli, session_id: SessionId) -> None:
    """Show a learning session with its settings."""
    with cli.connect() as client:
        session = client.get_learning_session(session_id).session
        if cli.out.as_json:
            cli.out.message(session)
            return
        described = client.list_algorithms(algorithm=session.algorithm).algorithms
    from mneme.cli import learning_views as views

    cli.out.facts(views.session_facts(session))
    for found in described:
        cli.out.line("")
        rows = [views.setting_row(key, session.config) for key in found.keys]
        cli.out.table(views.SETTINGS, rows)


@app.command()
def start(
    cli: Cli,
    *,
    algorithm: Annotated[
        str, typer.Argument(metavar="ALGORITHM", help="`mneme learning algorithms` lists them.")
    ],
    session_id: Annotated[
        str | None,
        typer.Argument(metavar="[SESSION]", help="Its id; made if left out.", show_default=False),
    ] = None,
    config: Annotated[
        list[Any] | None,
        typer.Option(parser=setting, metavar="KEY=VALUE", help="A setting; repeatable."),
    ] = None,
    action: Annotated[
        list[str] | None,
        typer.Option(metavar="LABEL", help="One of its actions, if they are known; repeatable."),
    ] = None,
    action_space: Annotated[
        Any,
        typer.Option(
            parser=space,
            metavar="JSON",
            help='Which actions there are, e.g. {"type": "discrete", "n": 4}; default labels or '
            "objects as they are first seen.",
        ),
    ] = None,
    state_space: Annotated[
        Any,
        typer.Option(
            parser=space,
            metavar="JSON",
            help='Which states there are, e.g. {"type": "box", "low": [0], "high": [1]}; default '
            "any objects.",
        ),
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Seed of all that is random.")] = None,
    background: Annotated[
        bool, typer.Option("--background", help="Feedback does not wait until it is learned.")
    ] = False,
) -> None:
    """Start a learning session, or go on with one; prints its id."""
    if action and action_space:
        raise InputError("--action and --action-space exclude each other")
    with cli.connect() as client:
        answer = client.start_learning_session(
            algorithm,
            session_id=session_id,
            config=dict(config) if config else None,
            state_space=state_space,
            action_space={"discrete": {"labels": action}} if action else action_space,
            seed=seed,
            learning="background" if background else None,
        )
    session = answer.session
    cli.out.done(session.id, answer)
    if answer.resumed and not cli.out.as_json:
        cli.out.remark(f"Resumed: {cells.plural(session.transitions, 'step')} recorded.")


@app.command()
def predict(
    cli: Cli,
    *,
    session_id: SessionId,
    state: Annotated[
        Any, typer.Argument(parser=value, metavar="STATE", help=f"The situation: {_VALUE}.")
    ],
    explore: Annotated[
        bool,
        typer.Option(
            "--explore", help="Choose an action to learn from; otherwise the best so far."
        ),
    ] = False,
    allow: Annotated[
        list[Any] | None,
        typer.Option(
            parser=value, metavar="ACTION", help=f"Choose among these: {_VALUE}; repeatable."
        ),
    ] = None,
    actor: Actor = None,
    target_return: Annotated[
        float | None,
        typer.Option(help="The sum of rewards to aim at (decision_transformer)."),
    ] = None,
) -> None:
    """Choose an action; `mneme learning feedback` reports what came of it."""
    with cli.connect() as client:
        answer = client.predict(
            session_id,
            state,
            explore=explore,
            allowed_actions=allow,
            actor_id=actor,
            target_return=target_return,
        )
    if cli.out.as_json:
        cli.out.message(answer)
        return
    from mneme.cli import learning_views as views

    made = answer.prediction
    why = "one to learn from; another is best so far" if made.explored else ""
    cli.out.facts(
        [
            ("Action", views.action(made.action)),
            ("Confidence", cells.score(made.confidence)),
            ("Chosen", why if made.trained else "at random; nothing was learned yet"),
            ("Prediction", made.prediction_id),
        ]
    )
    if len(made.actions) > 1:
        cli.out.line("")
        cli.out.table(views.SCORES, [views.score_row(score) for score in made.actions])


@app.command()
def feedback(
    cli: Cli,
    *,
    session_id: SessionId,
    reward: Annotated[float, typer.Argument(metavar="REWARD", help="How good it was.")],
    prediction: Annotated[
        str | None, typer.Option(metavar="ID", help="Of this prediction; or give both of:")
    ] = None,
    state: Annotated[
        Any, typer.Option(parser=value, metavar="STATE", help=f"Where: {_VALUE}.")
    ] = None,
    action: Annotated[
        Any, typer.Option(parser=value, metavar="ACTION", help=f"What was done: {_VALUE}.")
    ] = None,
    next_state: Annotated[
        Any,
        typer.Option(
            parser=value, metavar="STATE", help="Where it led; left out, nothing follows."
        ),
    ] = None,
    terminated: Annotated[
        bool, typer.Option("--terminated", help="The episode ended here.")
    ] = False,
    truncated: Annotated[
        bool, typer.Option("--truncated", help="It was broken off here, as by a limit of steps.")
    ] = False,
    actor: Actor = None,
    probability: Annotated[
        float | None, typer.Option(help="How likely the action was to be chosen, if known.")
    ] = None,
) -> None:
    """Report what came of an action."""
    if prediction is None and (state is None or action is None):
        raise InputError("give --prediction, or both --state and --action")
    with cli.connect() as client:
        answer = client.feedback(
            session_id=session_id,
            prediction_id=prediction,
            state=state,
            action=action,
            reward=reward,
            next_state=next_state,
            terminated=terminated,
            truncated=truncated,
            actor_id=actor,
            probability=probability,
        )
    from mneme.cli.learning_views import number

    earned = number(answer.episode_reward)
    said = f"step {answer.transition:,} recorded; reward of its episode {earned}"
    if answer.duplicate:
        said = f"step {answer.transition:,} was recorded before"
    cli.out.done(said, answer)


@app.command()
def metrics(
    cli: Cli,
    *,
    session_id: SessionId,
    window: Annotated[
        int, typer.Option(min=1, max=10_000, help="How many episodes moving averages cover.")
    ] = 100,
    points: Annotated[
        int, typer.Option(min=1, max=1_000, help="Most points that the chart may have.")
    ] = 70,
    evaluate: Annotated[
        bool,
        typer.Option(
            "--evaluate", help="Also show what the learned policy would have earned; takes longer."
        ),
    ] = False,
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Show it again as it learns, until interrupted.")
    ] = False,
    every: Annotated[
        float, typer.Option(min=0.1, metavar="SECONDS", help="With --watch, how often.")
    ] = 2.0,
) -> None:
    """Show how a session is doing, with a chart of its rewards."""

    from mneme.cli import learning_watching as watching

    def ask(client: MnemeClient) -> GetLearningMetricsResponse:
        return client.get_learning_metrics(
            session_id,
            window_size=window,
            history_size=points,
            evaluate=evaluate,
            timeout=cli.settings.timeout or (_EVALUATION_S if evaluate else None),
        )

    with cli.connect() as client:
        if watch:
            watching.watch(cli, lambda: ask(client), every)
            return
        answer = ask(client)
    if cli.out.as_json:
        cli.out.message(answer)
    else:
        for line in watching.lines_of(answer):
            cli.out.line(line)


app.command("import")(import_)
app.command("download")(download)


@app.command()
def train(
    cli: Cli,
    *,
    session_id: SessionId,
    steps: Annotated[
        int, typer.Option("--steps", "-n", min=1, max=1_000_000, help="Each learns from a batch.")
    ] = 100,
) -> None:
    """Learn again from what was recorded; interrupted, it keeps what was learned by then."""
    from mneme.cli.learning_watching import follow

    with cli.connect() as client, client.train(session_id, num_steps=steps) as messages:
        follow(cli, messages)


@app.command()
def end(
    cli: Cli,
    *,
    session_id: SessionId,
    export: Annotated[
        bool, typer.Option("--export/--no-export", help="Keep what it learned, to be downloaded.")
    ] = True,
    min_performance: Annotated[
        float | None,
        typer.Option(help="The least mean reward at which it is worth keeping as a skill."),
    ] = None,
    skill: Annotated[
        bool, typer.Option("--skill/--no-skill", help="Make a skill of it if it did well enough.")
    ] = True,
) -> None:
    """End a session; `mneme learning start` with its id resumes it."""
    from mneme.cli import learning_views as views

    with cli.connect() as client:
        answer = client.end_learning_session(
            session_id,
            skip_export=not export,
            min_performance=min_performance,
            skip_skill=not skill,
        )
    if cli.out.as_json:
        cli.out.message(answer)
        return
    cli.out.line(f"ended {session_id}: {views.standing(answer.metrics)}")
    if answer.model_bytes:
        size = cells.size(answer.model_bytes)
        cli.out.remark(f"Exported {size}: mneme learning download {session_id}")
    if answer.model_path:
        cli.out.remark(f"A copy is {answer.model_path} in the server's data folder.")
    if answer.skill_id:
        became = "became" if answer.skill_created else "is"
        cli.out.remark(f"It {became} the skill {answer.skill_id}.")
    elif answer.meets_skill_bar:
        cli.out.remark("It did well enough to become a skill.")


@app.command()
def delete(cli: Cli, session_id: SessionId, *, yes: Yes = False) -> None:
    """Delete a session with everything that it was given and has learned."""
    with cli.connect() as client:
        if not yes:
            session = client.get_learning_session(session_id).session
            steps = cells.plural(session.transitions, "recorded step")
            typer.confirm(f"Delete {session_id} with {steps}?", abort=True, err=True)
        session = client.delete_learning_session(session_id).session
    cli.out.done(f"deleted {session_id}", session)
