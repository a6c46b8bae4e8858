"""`mneme skills`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mneme._generated.choices import SkillRelationshipChoice
from mneme.cli import cells, files
from mneme.cli.app import App, Cli
from mneme.cli.fields import Fields, argument, number, text, texts
from mneme.cli.files import OutputFile
from mneme.cli.options import BestOf, Etag, Project, Tags, Task, free_json
from mneme.cli.output import Column
from mneme.cli.resources import Resource, found, inside
from mneme.cli.values import without_empty

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mneme.client import MnemeClient
    from mneme.types import Skill, SkillLink

app = App(help="What works for a kind of task, how often, and what belongs together.")

_WHERE = Fields(project=Project, tags=Tags)
_FILTER = Fields(
    **_WHERE,
    min_success_rate=number("With at least this success rate.", "--min-rate", min=0, max=1),
)
SkillId = Annotated[str, typer.Argument(metavar="SKILL", help="The skill's id.")]
Other = Annotated[str, typer.Argument(metavar="OTHER", help="The other skill's id.")]


def _share(skill: Skill) -> str:
    record = skill.record
    return f"{record.successes / record.uses:.0%}" if record.uses else ""


def _rate(skill: Skill) -> str:
    record = skill.record
    if not record.uses:
        return "not used yet"
    low, high = record.lower_bound, record.upper_bound
    return f"{record.successes} of {record.uses} succeeded ({low:.0%} to {high:.0%})"


def _link(link: SkillLink) -> str:
    kind = cells.name(link.relationship)
    return cells.clean(f"{link.parent_name} → {link.child_name}: {kind}, {link.weight:g}")


_COLUMNS = (
    Column("Skill", "id", style="cyan"),
    Column("Name", "name"),
    Column("Rate", _share),
    Column("Uses", "record.uses"),
    Column("Project", "project", optional=1),
    Column("Tags", "tags", optional=2),
    Column("Description", "description", below=True, lines=3),
)
_FOUND_COLUMNS = (Column("Score", "score:.2f", style="cyan"), *inside("skill", _COLUMNS))
_FACTS: dict[str, cells.Shown] = {
    "Skill": "id",
    "Name": "name",
    "Description": "description",
    "Inputs": "signature.inputs",
    "Outputs": "signature.outputs",
    "Code": "code",
    "Record": _rate,
    "Project": "project",
    "Tags": "tags",
    "Episodes": lambda it: cells.preview(" ".join(it.source_episode_ids)),
    "Metadata": "metadata",
    "Saved": "created_at",
    "Updated": "updated_at",
    "Etag": "etag",
}

_skills = Resource(app, "skill", key=Fields(skill_id=SkillId), columns=_COLUMNS)
_skills.list("iter_skills", "List skills, by name.", Fields(filter=_FILTER))


@app.command()
def get(cli: Cli, skill_id: SkillId) -> None:
    """Show one skill, with its links."""
    with cli.connect() as client:
        answer = client.get_skill(skill_id)
    if cli.out.as_json:
        cli.out.message(answer)
    else:
        links = [("Link", _link(one)) for one in answer.links]
        cli.out.facts([*cells.facts_of(answer.skill, _FACTS), *links])


_skills.create(
    "create_skill",
    "Save a skill, and print its id.",
    Fields(
        name=argument("NAME", "Its name, unique."),
        description=text("What it is for and how it is done."),
        code=text("How it is done, as code."),
        signature=Fields(inputs=free_json("What it takes."), outputs=free_json("What it gives.")),
        project=text("Its project.", metavar="NAME"),
        tags=texts("A label; repeatable.", "--tag"),
        source_episode_ids=texts(
            "An episode it comes from; repeatable.", "--episode", metavar="ID"
        ),
    ),
)


@app.command()
def search(cli: Cli, *, task: Task, chosen: Annotated[Any, _FILTER], limit: BestOf = 10) -> None:
    """Find skills that fit a task and are known to work."""
    with cli.connect() as client:
        answer = client.search_skills(task, filter=chosen, limit=limit)
    found(cli.out, answer, _FOUND_COLUMNS, "skill")


@app.command()
def use(
    cli: Cli,
    skill_id: SkillId,
    *,
    success: Annotated[bool, typer.Option("--success/--failure", help="How it ended.")],
    reward: Annotated[float | None, typer.Option(metavar="N", help="How good it was.")] = None,
    latency_ms: Annotated[
        int | None, typer.Option("--ms", min=0, help="How long it took, in milliseconds.")
    ] = None,
) -> None:
    """Say how a use of a skill ended."""
    with cli.connect() as client:
        answer = client.record_skill_use(
            skill_id, success=success, reward=reward, latency_ms=latency_ms
        )
    cli.out.done(f"{answer.skill.name}: {_rate(answer.skill)}", answer.skill)


@app.command()
def link(
    cli: Cli,
    skill_id: SkillId,
    other: Other,
    *,
    relationship: Annotated[
        SkillRelationshipChoice,
        typer.Option("--as", case_sensitive=False, help="What the first is to the other."),
    ],
    weight: Annotated[float | None, typer.Option(metavar="N", help="How much it counts.")] = None,
) -> None:
    """Say how a skill belongs to another."""
    with cli.connect() as client:
        answer = client.link_skills(skill_id, other, relationship=relationship, weight=weight)
    cli.out.done(_link(answer.link), answer.link)


@app.command()
def unlink(cli: Cli, skill_id: SkillId, other: Other) -> None:
    """Remove the links from a skill to another."""
    with cli.connect() as client:
        answer = client.unlink_skills(skill_id, other)
    cli.out.done(f"{cells.plural(answer.removed_count, 'link')} removed", answer)


@app.command()
def consolidate(
    cli: Cli,
    *,
    min_attempts: Annotated[
        int, typer.Option(min=1, help="Successes that a group needs at least.")
    ] = 3,
    min_reward: Annotated[
        float, typer.Option(help="The least reward that counts as a success.")
    ] = 0.7,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what would be made.")
    ] = False,
) -> None:
    """Make skills out of what succeeded again and again."""
    with cli.connect() as client:
        answer = client.consolidate_skills(
            min_attempts=min_attempts, min_reward=min_reward, dry_run=dry_run
        )
    if cli.out.as_json:
        cli.out.message(answer)
        return
    cli.out.things(_COLUMNS, (one.skill for one in answer.skills))
    before = "dry run, nothing was saved. " if dry_run else ""
    cli.out.line(
        f"{before}{cells.plural(answer.created_count, 'skill')} created, "
        f"{cells.count(answer.updated_count)} updated, "
        f"{cells.count(answer.unchanged_count)} unchanged"
    )


_skills.change(
    "update",
    "update_skill",
    'Change the given fields of a skill; "" empties a field.',
    Fields(
        name=text(),
        description=text("What it is for and how it is done."),
        code=text("How it is done, as code."),
        project=text("Its project.", metavar="NAME"),
        tags=texts("Its labels from now on; repeatable.", "--tag", sent=without_empty),
        metadata=free_json("Free JSON."),
        etag=Etag,
    ),
    said="updated {0.name}",
)
_skills.change(
    "delete",
    "delete_skill",
    "Delete a skill with its links and its record.",
    Fields(etag=Etag),
    said="deleted {0.name}",
    confirm="Delete the skill {skill_id} for good?",
)


@app.command("export")
def export(cli: Cli, *, file: OutputFile = None, chosen: Annotated[Any, _WHERE]) -> None:
    """Write skills with their links as JSON Lines, which `mneme skills import` reads."""
    with cli.connect() as client:
        files.export(cli, file, _documents(client, chosen), "skill")


def _documents(client: MnemeClient, chosen: Any) -> Iterator[str]:
    from mneme.plain import to_dict

    for skill in client.iter_skills(filter=chosen, page_size=1000):
        links = client.get_skill(skill.id).links
        document = {**to_dict(skill), "links": [to_dict(one) for one in links]}
        yield json.dumps(document, ensure_ascii=False)


@app.command("import")
def import_(
    cli: Cli,
    *,
    file: Annotated[Path, typer.Argument(help="JSON Lines or a JSON list of skills.")],
) -> None:
    """Import skills as `mneme skills export` writes them; their records of uses begin anew."""
    from mneme.importing.experience import import_skills

    with files.importing(cli, file) as client:
        done = import_skills(client, file)
    if cli.out.as_json:
        cli.out.line(json.dumps({"skills": done.skills, "links": done.links}))
        return
    cli.out.line(f"{cells.plural(done.skills, 'skill')} and {cells.plural(done.links, 'link')} in")
