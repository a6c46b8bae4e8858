from __future__ import annotations

from pathlib import Path

import pytest
from mneme_server.features.reflect.settings import Price, read_prices
from mneme_server.settings import SettingsError, load_settings


def test_prices_are_read_from_json_and_from_files(tmp_path: Path) -> None:
    expected = {"large": Price(2.5e-6, 1e-5), "v1.5": Price(0.0, 1e-6)}
    text = '{"large": {"input": 2.5, "output": 10}, "v1.5": {"output": 1}}'
    assert read_prices(text).prices == expected
    (tmp_path / "prices.json").write_text(text)
    assert read_prices(str(tmp_path / "prices.json")).prices == expected
    toml = '[large]\ninput = 2.5\noutput = 10\n["v1.5"]\noutput = 1\n'
    (tmp_path / "prices.toml").write_text(toml)
    assert read_prices(str(tmp_path / "prices.toml")).prices == expected


def test_there_are_no_prices_by_default() -> None:
    assert read_prices(None).prices == {}
    assert load_settings({}, None).model_prices is None


def test_a_dated_version_has_the_price_of_its_model_unless_it_has_its_own() -> None:
    table = read_prices('{"gpt": {"input": 1, "output": 1}, "gpt-2026-01-02": {"output": 9}}')
    assert table.price_of("gpt-2025-08-06") == table.price_of("gpt-20250806") == Price(1e-6, 1e-6)
    assert table.price_of("gpt-2026-01-02") == Price(0.0, 9e-6)
    assert table.price_of("gpt-mini") is None


@pytest.mark.parametrize(
    "text",
    [
        "no-such-file.toml", "{", "[]", '{"m": 3}', '{"m": {}}', '{"m": {"input": -1}}',
        '{"m": {"input": "1"}}', '{"m": {"input": true}}', '{"m": {"inputs": 1}}',
        '{"m": {"input": NaN}}',
    ],
)  # fmt: skip
def test_a_table_that_cannot_be_used_stops_the_start(text: str) -> None:
    with pytest.raises(SettingsError, match="model-prices"):
        load_settings({"model_prices": text}, None)
