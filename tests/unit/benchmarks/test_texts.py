from collections import Counter

from benchmarks.texts import EVENTS_PER_SESSION, events, lessons, questions


def test_the_same_seed_makes_the_same_texts() -> None:
    assert list(events(100)) == list(events(100))
    assert questions(50, 7) == questions(50, 7)
    assert lessons(20) == lessons(20)


def test_another_seed_makes_other_texts() -> None:
    one = {event.text for event in events(200, 1)}
    other = {event.text for event in events(200, 2)}
    assert len(one & other) < 10


def test_nearly_all_texts_differ() -> None:
    # The server embeds a text once: repeats would flatter the figures.
    texts = {event.text for event in events(5_000)}
    assert len(texts) > 4_950
    assert len(set(questions(2_000))) == 2_000


def test_words_are_neither_all_common_nor_all_rare() -> None:
    texts = [event.text for event in events(5_000)]
    counts = Counter(word for text in texts for word in set(text.lower().split()))
    rare = sum(1 for count in counts.values() if count <= 5)
    common = [word for word, count in counts.items() if count > 500]
    assert rare > 1_000
    assert len(common) > 10


def test_sessions_are_full_and_their_times_rise() -> None:
    made = list(events(3 * EVENTS_PER_SESSION))
    assert Counter(event.session for event in made) == dict.fromkeys(range(3), EVENTS_PER_SESSION)
    assert [event.at_s for event in made] == sorted(event.at_s for event in made)
