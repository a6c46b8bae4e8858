"""Short texts as agents leave them, and questions about them: made up, varied, always the same.

Words follow a long-tailed distribution, as in real text: few are everywhere, most are rare. Texts
of one session share a project, people and a subject, so that words and meaning both tell memories
apart.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

EVENTS_PER_SESSION = 20


def _words(text: str) -> list[str]:
    """Split at bars, or at spaces where there are none."""
    return text.split("|") if "|" in text else text.split()


_PEOPLE = _words(
    "Amara Bruno Chiara Dmitri Elif Farid Greta Hana Ivo Jasmin Kofi Lena Mateo Nadia Oscar Priya"
    " Quentin Rosa Samir Tove Umar Vera Wanda Xenia Yusuf Zoe Anders Bianca Carlos Dalia Emil Freya"
)
_PLACES = _words(
    "Lisbon Osaka Nairobi Bergen Montreal Hanoi Cusco Tallinn Perth Accra Bologna Galway Izmir"
    " Jaipur Krakow Leipzig Medellin Odense Porto Quito Riga Seville Tbilisi Utrecht Vilnius Zagreb"
)
_SERVICES = _words(
    "billing checkout search inventory login gateway scheduler mailer exporter thumbnail payments"
    " catalog notification reporting ingest webhook session cache pricing refund booking loyalty"
    " routing translation archive metrics quota invoice shipping recommendation"
)
_TOOLS = _words(
    "pytest|docker build|terraform apply|git rebase|npm install|kubectl rollout|psql|curl|make lint"
    "|the browser|the calendar|the flight search|the spreadsheet|the linter|the profiler|ripgrep"
    "|the type checker|the deploy script|the load test|the database migration"
)
_FAILURES = _words(
    "timed out after 30 seconds|returned a 502|ran out of memory|lost its connection|was refused"
    "|failed with a permission error|hung on a lock|wrote half of the file|dropped two columns"
    "|rejected the certificate|found a circular import|could not resolve the host name"
    "|hit the rate limit|rounded the amounts wrongly|sent every message twice|ignored the time zone"
    "|read a stale replica|parsed the date as month first|overflowed the disk|skipped the last page"
)
_CAUSES = _words(
    "a missing index|an expired token|a wrong environment variable|a race between two workers"
    "|an off-by-one in the pager|a renamed column|a proxy that strips headers|a leaked file handle"
    "|a default that changed in the new release|a typo in the configuration|an old lock file"
    "|clock skew between the hosts|a retry without a limit|a cache that was never cleared"
    "|a float where a decimal belongs|an unescaped quote|a firewall rule|a full partition"
)
_FIXES = _words(
    "pinned the version|added a retry with backoff|rotated the key|split the transaction"
    "|moved the check before the write|raised the pool size|rewrote the query|restored the backup"
    "|put the value into the settings|closed the handle in a finally block"
    "|added a unique constraint|turned the feature off|rolled the release back"
    "|normalised the time to UTC"
    "|asked the owner of the account|wrote a test that reproduces it|freed the partition"
)
_WISHES = _words(
    "an aisle seat|a vegetarian menu|a quiet room|a summary by Friday|fewer meetings|a refund"
    "|dark mode|shorter answers|the metric system|a second opinion|a window table|weekly reports"
    "|a direct flight|an invoice with the company's name|plain text mails|a call before delivery"
)
_SUBJECTS = _words(
    "garden|marathon|piano|novel|kitchen|sailing course|thesis|bakery|pottery class|bicycle|choir"
    "|orchard|camper van|chess club|astronomy night|language exam|wedding|allergy|greenhouse|mural"
)
_STARTS = _words("ka lo mi ter ven sol bra din fer gal hux jor nel pra qui ros tal vik wen zar")
_ENDS = _words("dor nix pia rum sta vex lio mar ton que bel cor fin gra hem jin kas lun mon")

_EVENTS = (
    "{tool} {failure} in the {service} service while {person} was working on {project}",
    "The {failure_of} in {project} came from {cause}; {person} {fix} and it passed",
    "{person} asked for {wish} when travelling to {place} on the {day}th",
    "Decided with {person} to keep {service} apart from {project} because of {cause}",
    "{person}: the {subject} in {place} is nearly done, I spent {count} hours on it",
    "{tool} finished for {project} with {count} warnings, the {service} service was not touched",
    "{person} prefers {wish}, also for the {project} team in {place}",
    "Ticket {ticket}: {service} {failure} for customers in {place} since release {project}",
    "{person}: can we move the {subject} to the {day}th? {other} is away in {place}",
    "After {person} {fix}, {service} answered in {count} milliseconds instead of {count2}",
    "{project} reads {service} data through {tool}; {cause} broke it on the {day}th",
    "Booked for {person}: {place}, room {count}, {wish} confirmed under {ticket}",
    "{other} told {person} that the {subject} costs {count2} euros in {place}",
    "Reverted {ticket} in {project} since {service} {failure} again; suspect {cause}",
)
_QUESTIONS = (
    "why did {tool} fail for {project}",
    "what was wrong with the {service} service in {place}",
    "how did {person} solve the problem with {project}",
    "what does {person} like when going to {place}",
    "when was the {subject} in {place} discussed with {person}",
    "what caused the trouble in {service} after {ticket}",
    "who knows about {project} and its {service} data",
    "has anybody seen {cause} before, perhaps in {project}",
    "what did we decide about {service} and {project}",
    "how much does the {subject} cost {person}",
)


@dataclass(frozen=True)
class MadeEvent:
    """A text with its session and its time."""

    session: int
    place: int
    text: str
    at_s: int


def events(count: int, seed: int = 1) -> Iterator[MadeEvent]:
    """Make `count` events in sessions of 20, over about a year from 2025-01-01."""
    draw = random.Random(seed)
    start_s = 1_735_689_600  # 2025-01-01
    topic: dict[str, str] = {}
    for number in range(count):
        session, place = divmod(number, EVENTS_PER_SESSION)
        if place == 0:
            topic = _topic(draw)
        template = draw.choice(_EVENTS)
        at_s = start_s + int(session / max(1, count / EVENTS_PER_SESSION) * 31_536_000) + place * 40
        yield MadeEvent(session, place, template.format_map(_details(draw, topic)), at_s)


def questions(count: int, seed: int = 2) -> list[str]:
    """Make `count` questions, each once."""
    draw = random.Random(seed)
    made: dict[str, None] = {}
    while len(made) < count:
        details = _details(draw, _topic(draw))
        made[draw.choice(_QUESTIONS).format_map(details)] = None
    return list(made)


def lessons(count: int, seed: int = 3) -> list[tuple[str, str]]:
    """Make `count` lessons: title and content."""
    draw = random.Random(seed)
    made = []
    for _ in range(count):
        details = _details(draw, _topic(draw))
        title = "{project}: {service} and {tool}, {ticket}".format_map(details)
        content = (
            "When {service} {failure} in {project}, look for {cause} first. Last time {person}"
            " {fix}, see {ticket}."
        ).format_map(details)
        made.append((title, content))
    return made


def _topic(draw: random.Random) -> dict[str, str]:
    """What the texts of a session share."""
    return {
        "project": _name(draw),
        "person": _tail(draw, _PEOPLE),
        "place": _tail(draw, _PLACES),
        "service": _tail(draw, _SERVICES),
        "subject": _tail(draw, _SUBJECTS),
    }


def _details(draw: random.Random, topic: dict[str, str]) -> dict[str, str]:
    fresh = {
        "tool": _tail(draw, _TOOLS),
        "failure": draw.choice(_FAILURES),
        "failure_of": draw.choice(("error", "outage", "slowdown", "wrong total", "crash", "delay")),
        "cause": draw.choice(_CAUSES),
        "fix": draw.choice(_FIXES),
        "wish": draw.choice(_WISHES),
        "other": _tail(draw, _PEOPLE),
        "day": str(draw.randint(4, 20)),
        "count": str(draw.randint(2, 990)),
        "count2": str(draw.randint(1_000, 9_900)),
        "ticket": f"{_name(draw)[:3].upper()}-{draw.randint(100, 9_999)}",
    }
    # Now and then something that is not the session's own.
    strays = {key: value for key, value in _topic(draw).items() if draw.random() < 0.2}
    return fresh | topic | strays


def _tail(draw: random.Random, words: Sequence[str]) -> str:
    """Choose a word; the first are far more frequent than the last."""
    return words[int(len(words) * draw.random() ** 2)]


def _name(draw: random.Random) -> str:
    """Make a project's name: of some 7,000, the first are the most frequent."""
    number = int(len(_STARTS) * len(_ENDS) * len(_STARTS) * draw.random() ** 2)
    rest, first = divmod(number, len(_STARTS))
    last, middle = divmod(rest, len(_ENDS))
    return f"{_STARTS[first]}{_ENDS[middle]}{_STARTS[last] if last else ''}"
