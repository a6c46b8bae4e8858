"""`mneme skills`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from mneme._generated.choices import SkillRelationshipChoice
from mneme.cli import cells
from mneme.cli.app import App, Cli
from mneme.cli.exits import InputError
from mneme.cli.files import written
from mneme.cli.options import Limit, Project, Tags, Yes, listed, page_size
from mneme.cli.output import Column
from mneme.cli.values import json_object

if TYPE_CHECKING:
    from mneme.types import Skill, SkillFilterFields, SkillLink

app = App(help="What works for a kind of task, how often, and what belongs together.")

SkillId = Annotated[str, typer.Argument(metavar="SKILL", help="The skill's id.")]
Other = Annotated[str, typer.Argument(metavar="OTHER", help="The other skill's id.")]
MinRate = Annotated[
    float | None, typer.Option("--min-rate", min=0, max=1, help="With at least this success rate.")
]

_COLUMNS = (
    Column("Skill", style="cyan"),
    Column("Name"),
    Column("Rate"),
    Column("Uses"),
    Column("Project", optional=1),
    Column("Tags", optional=2),
    Column("Description", below=True, lines=3),
)
_FOUND_COLUMNS = (Column("Score", style="cyan"), *_COLUMNS)


@app.command("list")
def list_(
    cli: Cli,
    *,
    project: Project = None,
    tag: Tags = None,
    min_rate: MinRate = None,
    limit: Limit = 50,
) -> None:
    """List skills, by name."""
    with cli.connect() as client:
        walk = client.iter_skills(
            filter=_filter(project, tag, min_rate), page_size=page_size(limit)
        )
        listed(cli.out, walk, limit, _COLUMNS, _row)


@app.command()
def get(cli: Cli, skill_id: SkillId) -> None:
    """Show one skill, with its links."""
    with cli.connect() as client:
        answer = client.get_skill(skill_id)
    if cli.out.as_json:
        cli.out.message(answer)
    else:
        cli.out.facts([*_facts(answer.skill), *map(_link_fact, answer.links)])


@app.command()
def create(
    cli: Cli,
    *,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Its name, unique.")],
    description: Annotated[
        str | None, typer.Option(help="What it is for and how it is done.")
    ] = None,
    code: Annotated[str | None, typer.Option(help="How it is done, as code.")] = None,
    inputs: Annotated[
        Any, typer.Option(parser=json_object, metavar="JSON", help="What it takes.")
    ] = None,
    outputs: Annotated[
        Any, typer.Option(parser=json_object, metavar="JSON", help="What it gives.")
    ] = None,
    project: Annotated[str | None, typer.Option(metavar="NAME", help="Its project.")] = None,
    tag: Annotated[list[str] | None, typer.Option("--tag", help="A label; repeatable.")] = None,
    episode: Annotated[
        list[str] | None,
        typer.Option("--episode", metavar="ID", help="An episode it comes from; repeatable."),
    ] = None,
) -> None:
    """Save a skill, and print its id."""
    with cli.connect() as client:
        answer = client.create_skill(
            name,
            description=description,
            code=code,
            signature={"inputs": inputs, "outputs": outputs} if inputs or outputs else None,
            project=project,
            tags=tag,
            source_episode_ids=episode,
        )
    cli.out.done(answer.skill.id, answer.skill)


@app.command()
def search(
    cli: Cli,
    *,
    task: Annotated[str, typer.Argument(metavar="TASK", help="The task at hand, in words.")],
    project: Project = None,
    tag: Tags = None,
    min_rate: MinRate = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=100)] = 10,
) -> None:
    """Find skills that fit a task and are known to work."""
    with cli.connect() as client:
        answer = client.search_skills(task, filter=_filter(project, tag, min_rate), limit=limit)
    if cli.out.as_json:
        cli.out.message(answer)
        return
    rows = [[f"{one.score:.2f}", *_row(one.skill)] for one in answer.results]
    cli.out.table(_FOUND_COLUMNS, rows)
    if not rows:
        cli.out.remark(f"None of {cells.plural(answer.searched_count, 'skill')} fits.")


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
    cli.out.done(_link_fact(answer.link)[1], answer.link)


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
    cli.out.table(_COLUMNS, [_row(one.skill) for one in answer.skills])
    before = "dry run, nothing was saved. " if dry_run else ""
    cli.out.line(
        f"{before}{cells.plural(answer.created_count, 'skill')} created, "
        f"{cells.count(answer.updated_count)} updated, "
        f"{cells.count(answer.unchanged_count)} unchanged"
    )


@app.command()
def delete(cli: Cli, skill_id: SkillId, *, yes: Yes = False) -> None:
    """Delete a skill with its links and its record."""
    if not yes:
        typer.confirm(f"Delete the skill {skill_id} for good?", abort=True, err=True)
    with cli.connect() as client:
        answer = client.delete_skill(skill_id)
    cli.out.done(f"deleted {answer.skill.name}", answer.skill)


@app.command("export")
def export(
    cli: Cli,
    *,
    file: Annotated[
        Path | None, typer.Argument(help="Output file; default standard output.")
    ] = None,
    project: Project = None,
    tag: Tags = None,
) -> None:
    """Write skills with their links as JSON Lines, which `mneme skills import` reads."""
    from mneme.plain import to_dict

    count = 0
    with cli.connect() as client, written(file) as target:
        for skill in client.iter_skills(filter=_filter(project, tag, None), page_size=1000):
            links = client.get_skill(skill.id).links
            document = {**to_dict(skill), "links": [to_dict(one) for one in links]}
            target.write(json.dumps(document, ensure_ascii=False) + "\n")
            count += 1
    if file:
        cli.out.remark(f"{cells.plural(count, 'skill')} written to {file}")


@app.command("import")
def import_(
    cli: Cli,
    *,
    file: Annotated[Path, typer.Argument(help="JSON Lines or a JSON list of skills.")],
) -> None:
    """Import skills as `mneme skills export` writes them; their records of uses begin anew."""
    from mneme.importing.experience import import_skills

    try:
        with cli.connect(retries=4) as client:
            done = import_skills(client, file)
    except OSError as error:
        raise InputError(f"cannot read {file}: {error.strerror}") from error
    if cli.out.as_json:
        cli.out.line(json.dumps({"skills": done.skills, "links": done.links}))
        return
    cli.out.line(f"{cells.plural(done.skills, 'skill')} and {cells.plural(done.links, 'link')} in")


def _filter(
    project: str | None, tag: list[str] | None, min_rate: float | None
) -> SkillFilterFields:
    chosen: dict[str, Any] = {"project": project, "tags": tag, "min_success_rate": min_rate}
    return cast("SkillFilterFields", chosen)


def _rate(skill: Skill) -> str:
    record = skill.record
    if not record.uses:
        return "not used yet"
    low, high = record.lower_bound, record.upper_bound
    return f"{record.successes} of {record.uses} succeeded ({low:.0%} to {high:.0%})"


def _row(skill: Skill) -> list[str]:
    record = skill.record
    return [
        cells.preview(skill.id),
        cells.preview(skill.name),
        f"{record.successes / record.uses:.0%}" if record.uses else "",
        cells.count(record.uses),
        cells.preview(skill.project),
        cells.preview(", ".join(skill.tags)),
        cells.preview(skill.description),
    ]


def _facts(skill: Skill) -> list[tuple[str, str]]:
    return [
        ("Skill", cells.preview(skill.id)),
        ("Name", cells.clean(skill.name)),
        ("Description", cells.clean(skill.description)),
        ("Inputs", cells.preview(cells.json_text(skill.signature.inputs))),
        ("Outputs", cells.preview(cells.json_text(skill.signature.outputs))),
        ("Code", cells.clean(skill.code)),
        ("Record", _rate(skill)),
        ("Project", cells.preview(skill.project)),
        ("Tags", cells.preview(", ".join(skill.tags))),
        ("Episodes", cells.preview(" ".join(skill.source_episode_ids))),
        ("Metadata", cells.preview(cells.json_text(skill.metadata))),
        ("Saved", cells.when(skill.created_at)),
        ("Updated", cells.when(skill.updated_at)),
    ]


def _link_fact(link: SkillLink) -> tuple[str, str]:
    kind = cells.name(link.relationship)
    return "Link", cells.clean(f"{link.parent_name} → {link.child_name}: {kind}, {link.weight:g}")
