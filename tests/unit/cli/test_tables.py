from __future__ import annotations

from mneme.cli import cells
from mneme.cli.fields import Fields, argument, choice, flag, number, option, text, texts
from mneme.cli.values import without_empty
from mneme.messages import Importance
from mneme.messages import Lesson as LessonMessage
from mneme.types import Lesson


def test_what_a_line_gives_is_sent_under_the_fields_names_and_the_rest_left_out() -> None:
    table = Fields(
        category=text(),
        filter=Fields(
            tags=texts("A label.", "--tag", sent=without_empty),
            min_reward=number(),
            archived=flag("Archived ones, too.", "--archived"),
        ),
        scope=Fields(agent_id=text("An agent.", "--agent")),
    )
    given = {
        **{"category": None, "tags": ["", "a"], "min_reward": 0.0, "archived": False},
        **{"agent_id": None, "limit": 3},
    }
    assert table.take(given) == {"filter": {"tags": ["a"], "min_reward": 0.0, "archived": False}}
    assert given == {"limit": 3}


def test_an_option_may_be_left_out_if_it_can_be_none_or_is_a_flag() -> None:
    table = Fields(
        name=argument("NAME"),
        title=option(str),
        outcome=choice(str),
        success=option(bool | None, "How it ended.", "--success/--failure"),
        scope=Fields(archived=flag()),
    )
    defaults = {one.name: one.default for one in table.parameters()}
    nothing = defaults.pop("name")
    assert nothing is defaults.pop("title")
    assert nothing not in (None, False)
    assert defaults == {"outcome": None, "success": None, "archived": False}


def test_a_cell_shows_a_field_as_its_type_is_read() -> None:
    message = LessonMessage(
        title="a\nb\x1b[2J",
        access_count=1234,
        tags=["x", "y"],
        importance=Importance.IMPORTANCE_HIGH,
    )
    message.context.update({"k": "v"})
    message.created_at.seconds = 1
    lesson = Lesson(message)
    shown = ("title", "access_count", "access_count:d", "tags", "importance", "context")
    assert [cells.cell_of(lesson, one) for one in shown] == [
        *["a b⟨U+001B⟩[2J", "1,234", "1234", "x, y", "high", '{"k": "v"}']
    ]
    assert cells.cell_of(lesson, "archived_at") == ""
    assert cells.cell_of(lesson, "created_at").startswith("19")
    assert cells.cell_of(lesson, lambda one: f"<{one.title}>") == "<a\nb\x1b[2J>"
    assert cells.facts_of(lesson, {"Title": "title"}) == [("Title", "a\nb⟨U+001B⟩[2J")]
