"""The guide says of every field of AgentDB's tools what it is here, and what it says is true."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from mneme_mcp.toolsets import TOOLSETS, tools_of

GUIDE = Path(__file__).parents[2] / "docs/guides/memories.md"
# What AgentDB 1.3 takes and answers, by tool.
FIELDS = {
    "agentdb_insert": "text tags metadata cache_embedding success vector_id text_preview"
    " embedding_dimension cache_hit latency_ms",
    "agentdb_insert_batch": "items batch_size parallel_embeddings success total_inserted vector_ids"
    " stats embedding_time_ms insertion_time_ms total_time_ms vectors_per_second cache_hits"
    " cache_misses performance_gain",
    "agentdb_search": "query k min_similarity filters rerank success results vector_id text"
    " similarity tags metadata causal_uplift stats total_matches returned search_time_ms"
    " rerank_time_ms hnsw_used",
    "agentdb_delete": "vector_ids filters before_timestamp min_age_days cascade dry_run success"
    " deleted vectors episodes skills causal_edges vector_ids_deleted latency_ms",
    "agentdb_init": "db_path dimension model enable_hnsw reset wal_mode success stats hnsw_enabled"
    " total_vectors total_episodes total_skills db_size_mb startup_time_ms schema_version"
    " capabilities",
    "agentdb_stats": "include_distribution include_quality success database path size_mb wal_mode"
    " schema_version counts total_vectors total_episodes total_skills total_causal_edges"
    " total_certificates embeddings model dimension cache_size cache_hit_rate index hnsw_enabled"
    " index_size_mb avg_search_ms quality avg_episode_reward avg_skill_success_rate"
    " avg_causal_confidence",
    "db_stats": "total_vectors total_episodes total_skills total_causal_edges total_certificates"
    " total_learning_sessions total_experiences total_patterns cache_size avg_episode_reward"
    " avg_skill_success avg_causal_confidence",
    "agentdb_pattern_store": "name description pattern_type pattern_data success pattern_id",
    "agentdb_pattern_search": "pattern_name k extract_matches success results vector_id text"
    " matches match_positions stats total_matches search_time_ms",
    "agentdb_pattern_stats": "pattern_name success patterns pattern_id name pattern_type uses"
    " success_rate avg_match_time_ms last_used",
    "agentdb_clear_cache": "cache_types vacuum older_than_days success cleared embeddings search"
    " patterns space_reclaimed_mb vacuum_run latency_ms",
}
SPECS = {spec.name: spec for spec in tools_of(TOOLSETS) if spec.name in FIELDS}


def rows() -> dict[str, dict[str, str]]:
    """What the guide's table says of each field, by tool."""
    table = GUIDE.read_text().partition("<!-- begin: agentdb -->")[2].partition("<!-- end")[0]
    told: dict[str, dict[str, str]] = {name: {} for name in FIELDS}
    for line in table.strip().splitlines()[2:]:
        tool, fields, here = (cell.strip() for cell in line.strip("|").split("|"))
        for field in re.findall(r"`(\w+)`", fields):
            assert field not in told[tool.strip("`")], f"{tool} {field} is told twice"
            told[tool.strip("`")][field] = here
    return told


@pytest.mark.parametrize("tool", FIELDS)
def test_the_guide_tells_of_every_field(tool: str) -> None:
    assert rows()[tool].keys() == set(FIELDS[tool].split())


@pytest.mark.parametrize("tool", FIELDS)
def test_what_is_the_same_is_there_and_what_is_none_is_not(tool: str) -> None:
    spec = SPECS[tool]
    schemas = json.dumps([spec.arguments.schema_for_hosts(), spec.output.schema_for_hosts()])
    for field, here in rows()[tool].items():
        shown = f'"{field}": {{' in schemas
        taken = spec.arguments.field_named(field) is not None
        if here.startswith("the same"):
            assert shown, field
        elif here.startswith("an answer only"):
            assert shown, field
            assert not taken, field
        elif here.startswith("none") or here.startswith("a call"):
            assert not shown, field
            assert not taken, field
        else:
            named = re.findall(r"`(\w+)`", here)[0]
            assert f'"{named}": {{' in schemas
            assert named == field or spec.arguments.field_named(field) == named
