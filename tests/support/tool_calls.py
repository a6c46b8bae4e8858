"""Calls of every MCP tool, with what a host is to read of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Check = Callable[[str, Mapping[str, Any]], bool]

# A day of work; each call builds on those before it. `$id` is what a plain tool named last.
A_DAY: list[tuple[str, dict[str, Any], Check]] = [
    ("wake_up", {}, lambda text, data: "nothing to pick up" in text),
    (
        "agentlens_recall",
        {"query": "authentication issues"},
        lambda text, data: "No relevant memories found" in text and data["results"] == [],
    ),
    (
        "agentlens_context",
        {"topic": "database migrations"},
        lambda text, data: "No relevant past context found" in text and data["sessions"] == [],
    ),
    (
        "agentlens_reflect",
        {"analysis": "error_patterns"},
        lambda text, data: "Nothing to reflect on" in text and data["insights"] == [],
    ),
    (
        "agentlens_session_start",
        {"sessionId": "auth-1", "agentId": "coder-1", "project": "shop", "userId": "user123"},
        lambda text, data: data["sessionId"] == "auth-1" and data["status"] == "active",
    ),
    (
        "agentlens_log_event",
        {
            "sessionId": "auth-1",
            "eventType": "tool_error",
            "name": "login",
            "error": "authentication failed: token expired",
            "payload": {"arguments": {"user": "ann"}},
        },
        lambda text, data: data["sessionId"] == "auth-1" and data["eventId"] in text,
    ),
    (
        "agentlens_log_event",
        {
            "session_id": "auth-1",
            "event_type": "tool_error",
            "name": "login",
            "error": "authentication failed: token expired",
        },
        lambda text, data: data["sessionId"] == "auth-1" and not data["duplicate"],
    ),
    (
        "agentlens_query_events",
        {"sessionId": "auth-1", "eventTypes": ["tool_error"]},
        lambda text, data: data["events"][0]["error"] == "authentication failed: token expired",
    ),
    (
        "agentlens_learn",
        {
            "action": "save",
            "title": "Always run tests",
            "content": "Before deploying to prod, always run the test suite",
            "category": "deployment",
        },
        lambda text, data: data["lesson"]["id"] in text
        and data["lesson"]["category"] == "deployment",
    ),
    (
        "agentlens_learn",
        {"action": "search", "query": "deployment best practices"},
        lambda text, data: data["lessons"][0]["title"] == "Always run tests",
    ),
    (
        "agentlens_learn",
        {"action": "list", "category": "error-handling"},
        lambda text, data: data["total"] == 0 and "No lessons found" in text,
    ),
    (
        "agentlens_recall",
        {"query": "authentication issues", "scope": "events"},
        lambda text, data: data["results"][0]["sourceType"] == "event" and "token expired" in text,
    ),
    (
        "agentlens_recall",
        {"query": "tests before deployment", "scope": "lessons"},
        lambda text, data: {r["sourceType"] for r in data["results"]} == {"lesson"},
    ),
    (
        "agentlens_reflect",
        {"analysis": "error_patterns"},
        # Both errors are of one session: nothing recurs.
        lambda text, data: data["insights"] == [] and data["metadata"]["eventsAnalyzed"] == 2,
    ),
    (
        "agentlens_reflect",
        {"analysis": "cost_analysis", "params": {"model": "claude-opus-4-6"}},
        lambda text, data: data["analysis"] == "cost_analysis" and "claude-opus-4-6" in text,
    ),
    (
        "reflection_store",
        {
            "sessionId": "session-1",
            "projectId": "project-1",
            "taskDescription": "Parse CSV file",
            "attemptNumber": 1,
            "outcome": "failure",
            "whatWorked": [],
            "whatDidNotWork": ["Regex failed on quoted fields"],
            "nextStrategy": "Use csv-parse library",
            "tags": ["parsing"],
        },
        lambda text, data: data["reflection"]["projectId"] == "project-1",
    ),
    (
        "reflection_get",
        {"sessionId": "session-1", "limit": 5},
        lambda text, data: "Regex failed on quoted fields" in text
        and data["reflections"][0]["nextStrategy"] == "Use csv-parse library",
    ),
    (
        "reflection_store",
        {
            "sessionId": "session-1",
            "projectId": "project-1",
            "taskDescription": "Fix authentication token expiry",
            "outcome": "success",
            "whatWorked": ["Increased refresh buffer"],
            "whatDidNotWork": [],
            "nextStrategy": "Monitor token timing",
            "tags": ["auth"],
        },
        lambda text, data: data["reflection"]["attemptNumber"] == 1,
    ),
    (
        "reflection_search",
        {"projectId": "project-1", "taskDescription": "Debug login timeout issues"},
        lambda text, data: data["reflections"][0]["tags"] == ["auth"],
    ),
    (
        "reflection_search",
        {"projectId": "project-1", "outcomeFilter": ["failure"]},
        lambda text, data: [r["outcome"] for r in data["reflections"]] == ["failure"],
    ),
    (
        "reflection_summary",
        {"projectId": "project-1"},
        lambda text, data: data["totalReflections"] == 2
        and data["successRate"] == 0.5
        and data["commonFailures"] == ["Regex failed on quoted fields"],
    ),
    (
        "memory_log",
        {
            "timestamp": "2025-10-31T04:58:01Z",
            "agent_id": "coder-1",
            "repo": "gptcoach2",
            "event_type": "error",
            "context": "npm install failed with EACCES",
            "command": "sudo chown -R $USER . && npm ci",
            "lesson": "always verify ownership before npm operations",
            "success_rate": "9/10",
            "tags": ["npm", "permissions", "node_modules"],
        },
        lambda text, data: data["entry"]["event_type"] == "error" and not data["duplicate"],
    ),
    (
        "memory_query",
        {"text": "npm install fails with permission error", "repo": "gptcoach2", "limit": 5},
        lambda text, data: "**Relevant Memories (1):**" in text
        and data["entries"][0]["success_rate"] == "9/10"
        and data["token_count"] < 500,
    ),
    (
        "sleep",
        {
            "session_id": "auth-1",
            "project": "shop",
            "work_done": {
                "progress": ["Fixed JWT validation", "Added tests"],
                "completed_todos": ["Implement JWT decode", "Test edge cases"],
                "decisions": [{"decision": "Use RS256", "rationale": "Better security"}],
            },
            "next_steps": {"todos": [{"content": "Add refresh tokens", "priority": 2}]},
            "important_context": {"locked": [{"label": "api_spec", "version": "1.0"}]},
        },
        lambda text, data: data["handover"]["open_todos"]
        == [{"content": "Add refresh tokens", "priority": 2}]
        and data["handover"]["locked_contexts"][0]["label"] == "api_spec",
    ),
    (
        "wake_up",
        {"project": "shop"},
        lambda text, data: "Fixed JWT validation" in text
        and data["last_handover"]["session_id"] == "auth-1"
        and any("refresh tokens" in one["description"] for one in data["suggestions"]),
    ),
    (
        "semantic_session_search",
        {"query": "JWT validation"},
        lambda text, data: data["results"][0]["session_id"] == "auth-1",
    ),
    (
        "agentlens_context",
        {"topic": "token validation", "userId": "user123"},
        lambda text, data: data["sessions"][0]["sessionId"] == "auth-1"
        and data["sessions"][0]["summary"]
        and len(data["sessions"][0]["keyEvents"]) >= 1,
    ),
    (
        "agentlens_context",
        {"topic": "token validation", "userId": "somebody-else"},
        lambda text, data: data["sessions"] == [],
    ),
    (
        "agentlens_session_start",
        {"session_id": "other-1"},
        lambda text, data: data["sessionId"] == "other-1",
    ),
    (
        "agentlens_session_end",
        {"sessionId": "other-1", "status": "completed"},
        lambda text, data: data["status"] == "completed",
    ),
    (
        "agentdb_insert",
        {"text": "Implement OAuth2 authentication with refresh tokens, for the web shop alone",
         "tags": ["auth", "security"], "metadata": {"priority": "high", "source": "user"}},
        lambda text, data: data["vector_id"] in text
        and data["text_preview"] == "Implement OAuth2 authentication with refresh token..."
        and data["embedding_dimension"] == 384
        and data["metadata"] == {"priority": "high", "source": "user"}
        and not data["already_known"],
    ),
    (
        "agentdb_insert",
        {"text": "Implement OAuth2 authentication with refresh tokens, for the phones too"},
        lambda text, data: "send it again with supersedes" in text
        and data["similar"][0]["tags"] == ["auth", "security"],
    ),
    (
        "agentdb_insert_batch",
        {"items": [{"text": "Deploys run on Fridays", "tags": ["ops"]}, {"text": "Ann is out"},
                   {"text": "Deploys run on Fridays"}], "batch_size": 2},
        lambda text, data: (data["total_inserted"], data["already_known"]) == (2, 1)
        and len(data["vector_ids"]) == 3
        and data["stats"]["cache_hits"] + data["stats"]["cache_misses"] == 2
        and data["stats"]["vectors_per_second"] > 0,
    ),
    (
        "agentdb_search",
        {"query": "How to implement JWT authentication?", "k": 10, "min_similarity": 0.2,
         "filters": {"tags": ["auth", "jwt"], "metadata": {"priority": "high"}}},
        lambda text, data: [one["tags"] for one in data["results"]] == [["auth", "security"]]
        and data["stats"]["returned"] == data["stats"]["total_matches"] == 1
        and "OAuth2" in text,
    ),
    (
        "agentdb_insert",
        {"text": "Ann signs off on every release", "user_id": "ann"},
        lambda text, data: not data["already_known"],
    ),
    (
        "mneme_profile",
        {"user_id": "ann", "token_budget": 200},
        lambda text, data: [one["text"] for one in data["items"]]
        == ["Ann signs off on every release"]
        and data["items"][0]["reason"] == "recent"
        and data["items"][0]["memory_id"] in text
        and data["left_out_count"] == 0,
    ),
    (
        "agentdb_delete",
        {"filters": {"tags": ["ops"], "before_timestamp": 4_000_000_000}, "dry_run": True},
        lambda text, data: "would be deleted" in text and data["deleted"]["vectors"] == 1,
    ),
    (
        "agentdb_delete",
        {"filters": {"tags": ["ops"]}},
        lambda text, data: data["deleted"]
        == {"vectors": 1, "episodes": 0, "skills": 0, "causal_edges": 0}
        and len(data["vector_ids_deleted"]) == 1,
    ),
    (
        "agentdb_pattern_store",
        {"name": "oauth_version", "pattern_type": "REGEX",
         "pattern_data": {"regex": r"OAuth(\d)"}, "description": "which OAuth"},
        lambda text, data: data["pattern_id"] in text
        and data["pattern_data"] == {"regex": r"OAuth(\d)"},
    ),
    (
        "agentdb_pattern_search",
        {"pattern_name": "oauth_version", "k": 1},
        lambda text, data: data["results"][0]["matches"] == ["OAuth2"]
        and data["results"][0]["match_positions"] == [[10, 16]]
        and data["stats"]["total_matches"] == 2
        and "OAuth2" in text,
    ),
    (
        "agentdb_pattern_feedback",
        {"pattern_name": "oauth_version", "right": []},
        lambda text, data: "no match was judged yet" in text,
    ),
    (
        "agentdb_pattern_store",
        {"name": "important", "pattern_type": "structural",
         "pattern_data": {"schema": {"required": ["priority"]}}},
        lambda text, data: data["pattern_data"]["target"] == "metadata",
    ),
    (
        "agentdb_pattern_store",
        {"name": "logging_in", "pattern_type": "semantic", "pattern_data": {"text": "logging in"}},
        lambda text, data: data["pattern_data"]["threshold"] == 0.5,
    ),
    (
        "agentdb_pattern_search",
        {"pattern_name": "important", "extract_matches": False},
        lambda text, data: "matches" not in data["results"][0]
        and data["stats"]["total_matches"] == 1,
    ),
    (
        "agentdb_pattern_stats",
        {"pattern_name": "oauth_version"},
        lambda text, data: data["patterns"][0]["uses"] == 1
        and data["patterns"][0]["avg_match_time_ms"] > 0
        and "success_rate" not in data["patterns"][0],
    ),
    (
        "agentdb_pattern_stats",
        {},
        lambda text, data: [one["name"] for one in data["patterns"]]
        == ["important", "logging_in", "oauth_version"],
    ),
    (
        "alert_create",
        {"name": "It fails", "condition": "ERROR_RATE_EXCEEDS", "threshold": 0.99,
         "min_events": 1000, "project": "shop", "rule_id": "fails"},
        lambda text, data: (data["rule_id"], data["state"]) == ("fails", "ok")
        and text.startswith("[id fails] It fails: error_rate_exceeds 0.99 in 60 minutes, pro"),
    ),
    (
        "alert_update",
        {"rule_id": "fails", "window_minutes": 15, "enabled": False},
        lambda text, data: data["window_minutes"] == 15 and data["threshold"] == 0.99
        and "15 minutes, project shop, disabled" in text,
    ),
    (
        "alert_update",
        {"rule_id": "fails", "agent_id": "helper", "tags": ["ci"]},
        lambda text, data: data["scope"]
        == {"agent_id": "helper", "project": "shop", "tags": ["ci"]},
    ),
    (
        "alert_update",
        {"rule_id": "fails", "project": "", "tags": []},
        lambda text, data: data["scope"] == {"agent_id": "helper"}
        and "15 minutes, agent helper, disabled" in text,
    ),
    (
        "alert_update",
        {"rule_id": "fails", "condition": "Error-Pattern-Exceeds", "pattern": "timed out",
         "threshold": 3},
        lambda text, data: (data["condition"], data["threshold"]) == ("error_pattern_exceeds", 3),
    ),
    (
        "alert_update",
        {"rule_id": "fails", "condition": "trend_exceeds", "pattern": "", "trend": "latency"},
        lambda text, data: (data["condition"], data["threshold"]) == ("trend_exceeds", 3),
    ),
    (
        "alert_update",
        {"rule_id": "fails", "condition": "cost_exceeds", "trend": ""},
        lambda text, data: data["condition"] == "cost_exceeds"
        and data["scope"] == {"agent_id": "helper"},
    ),
    (
        "alert_update",
        {"rule_id": "fails", "resolve_threshold": 2},
        lambda text, data: data["threshold"] == 3,
    ),
    (
        "alert_update",
        {"rule_id": "fails", "threshold": 1, "resolve_threshold": ""},
        lambda text, data: data["threshold"] == 1,
    ),
    (
        "alert_list",
        {},
        lambda text, data: [one["rule_id"] for one in data["rules"]] == ["fails"]
        and "It fails" in text,
    ),
    (
        "alert_try",
        {"condition": "cost_exceeds", "threshold": 1_000_000, "pattern": ""},
        lambda text, data: data["alert_count"] == 0
        and text.startswith("It would not have triggered"),
    ),
    (
        "alert_try",
        {"rule_id": "fails", "condition": "", "pattern": "", "project": "", "tags": []},
        lambda text, data: data["alert_count"] == 0,
    ),
    (
        "alert_history",
        {"state": "triggered"},
        lambda text, data: data["alerts"] == [] and text == "No rule triggered.",
    ),
    (
        "alert_delete",
        {"rule_id": "fails"},
        lambda text, data: data["rule_id"] == "fails" and "its history stays" in text,
    ),
    (
        "agentdb_init",
        {"model": "all-MiniLM-L6-v2", "dimension": 384},
        lambda text, data: data["stats"]["total_memories"] > 0
        and data["db_path"].endswith("mneme.db")
        and "MemoryService" in data["capabilities"],
    ),
    (
        "agentdb_stats",
        {"include_distribution": True, "include_quality": True},
        lambda text, data: data["counts"]["total_memories"] > 0
        and data["distribution"]["tags"]["auth"] == 1
        and data["index"]["avg_search_ms"] > 0
        and not data["index"]["hnsw_enabled"]
        and "memories" in text,
    ),
    (
        "db_stats",
        {},
        lambda text, data: data["total_patterns"] == 3 and data["cache_size"] > 0,
    ),
    (
        "agentdb_clear_cache",
        {"cache_types": ["patterns", "embeddings"], "vacuum": True},
        lambda text, data: data["cleared"]["patterns"] == 2 and data["vacuum_run"],
    ),
    (
        "reflexion_store",
        {"session_id": "session-1", "task": "implement_auth", "reward": 0.95, "success": True,
         "critique": "OAuth2 worked perfectly", "latency_ms": 1250, "tags": ["auth"]},
        lambda text, data: data["success"] and data["reward"] == 0.95
        and data["episode_id"] in text,
    ),
    (
        "reflexion_store",
        {"sessionId": "auth-1", "success": False, "task": "authentication of ann",
         "critique": "The token had expired. Refresh it first."},
        lambda text, data: "Taken from the session's record" in text
        and {"agent_id", "user_id", "project"} <= set(data["filled_fields"]),
    ),
    (
        "reflexion_retrieve",
        {"task": "authentication", "onlyFailures": True, "k": 3},
        lambda text, data: [one["success"] for one in data["episodes"]] == [False]
        and "The token had expired." in data["critique_summary"]
        and "Refresh it first. [1 failed]" in text,
    ),
    (
        "agentlens_context",
        {"query": "authentication"},
        lambda text, data: "authentication of ann" in [e["task"] for e in data["episodes"]]
        and "” failed, reward" in text,
    ),
    (
        "agentlens_context",
        {"query": "authentication", "withoutExperience": True},
        lambda text, data: "episodes" not in data and ", episode " not in text,
    ),
    (
        "recall_with_certificate",
        {"query": "How to implement JWT authentication?", "k": 5, "alpha": 0.7, "beta": 0.2,
         "gamma": 0.1},
        lambda text, data: data["results"][0]["reason"] == "semantic_match"
        and data["certificate_id"] in text
        and data["minimal_why"] and 0 < data["completeness_score"] <= 1,
    ),
    (
        "skill_create",
        {"name": "oauth2_implementation", "description": "OAuth2 with PKCE flow",
         "code": "/* implementation */", "success_rate": 0.95, "inputs": {"issuer": "URL"}},
        lambda text, data: data["name"] == "oauth2_implementation" and data["skill_id"] in text,
    ),
    (
        "skill_search",
        {"task": "log in with PKCE", "k": 10, "min_success_rate": 0.9},
        lambda text, data: [one["claimed_success_rate"] for one in data["skills"]] == [0.95]
        and data["skills"][0]["signature"] == {"inputs": {"issuer": "URL"}}
        and "never used" in text and "/* implementation */" in text,
    ),
    (
        "skill_consolidate",
        {"minAttempts": 1, "minReward": 0.7, "dry_run": True, "tags": ["auth"]},
        lambda text, data: (data["created"], data["episodes"]) == (1, 1)
        and "nothing was changed" in text
        and data["skills"][0]["success_rate"] == 1,
    ),
    (
        "skill_consolidate",
        {"min_attempts": 3},
        lambda text, data: data["skills"] == [] and "0 skills created" in text,
    ),
    (
        "causal_add_edge",
        {"cause": "oauth2_strategy", "effect": "authentication_success", "uplift": 0.25,
         "confidence": 0.95},
        lambda text, data: data["uplift"] == 0.25 and data["edge_id"] in text,
    ),
    (
        "causal_add_edge",
        {"cause": "authentication_success", "effect": "happy_users", "uplift": 0.4},
        lambda text, data: data["confidence"] == 0.95,
    ),
    (
        "causal_query",
        {"cause": "oauth2_strategy", "effect": "happy_users", "k": 3},
        lambda text, data: data["chains"][0]["path"]
        == ["oauth2_strategy", "authentication_success", "happy_users"]
        and abs(data["chains"][0]["uplift"] - 0.1) < 1e-9
        and "nothing acts on its end" in text,
    ),
    (
        "learner_discover",
        {"min_attempts": 3, "min_success_rate": 0.6, "dry_run": True, "adjust_for": ["tag:auth"]},
        lambda text, data: data["discovered"] == [] and data["episodes"] == 2
        and "nothing was changed" in text
        and "Not adjusted for tag:auth: no value is shared by 10 attempts" in text,
    ),
    (
        "causal_experiment_create",
        {"name": "Review first", "cause": "code_review", "effect": "tests_pass",
         "experiment_id": "review-first"},
        lambda text, data: data["experiment_id"] == "review-first",
    ),
    (
        "causal_experiment_assign",
        {"experiment_id": "review-first", "subject": "pull-request-7", "stratum": "shop"},
        lambda text, data: data["treatment"] == ("gets the cause" in text),
    ),
    (
        "causal_experiment_observe",
        {"experiment_id": "review-first", "subject": "pull-request-7", "outcome": 1},
        lambda text, data: data["observations"] == 1 and "1 observation now" in text,
    ),
    (
        "causal_experiment_analyze",
        {"experiment_id": "review-first"},
        lambda text, data: data["treatment_count"] + data["control_count"] == 1
        and "p_value" not in data and "nothing can be tested yet" in text,
    ),
    (
        "learning_start_session",
        {"session_id": "agent-123", "algorithm": "linucb", "config": {"epsilon": 0.1}},
        lambda text, data: data["config"]["epsilon"] == 0.1
        and data["state"] == {"episodes_completed": 0, "total_reward": 0, "avg_reward": 0}
        and not data["resumed"],
    ),
    (
        "learning_predict",
        {"session_id": "agent-123", "state": {"task_type": "auth", "complexity": 0.8},
         "allowed_actions": [{"strategy": "oauth2_pkce"}], "exploration_mode": True},
        lambda text, data: data["action"]
        == {"type": "discrete", "value": {"strategy": "oauth2_pkce"}, "confidence": 1}
        and "drawn at random" in text and not data["trained"],
    ),
    (
        "learning_feedback",
        {"session_id": "agent-123", "state": {"task_type": "auth", "complexity": 0.8},
         "action": {"strategy": "oauth2_pkce"}, "reward": 0.92,
         "next_state": {"implemented": True}, "done": True},
        lambda text, data: data["transition_stored"] and data["model_updated"]
        and data["metrics"]["episode_reward"] == 0.92
        and data["metrics"]["episodes_completed"] == 1,
    ),
    (
        "experience_record",
        {"session_id": "agent-123", "trajectory": [
            {"state": {"task_type": "ui"}, "action": "mock", "reward": 0.5, "done": True},
            {"state": {"task_type": "ui"}, "action": {"type": "discrete", "value": "mock"},
             "reward": 0.25, "done": True}], "metadata": {"task": "login", "success": True}},
        lambda text, data: data["steps_recorded"] == 2 and data["total_reward"] == 0.75
        and data["buffer_size"] == 3 and 0 < data["buffer_utilization"] < 1,
    ),
    (
        "learning_metrics",
        {"session_id": "agent-123", "window_size": 10},
        lambda text, data: data["metrics"]["episodes_completed"] == 3
        and data["convergence_status"] == "initializing"
        and "3 episodes, mean reward 0.557" in text
        and text.endswith("; convergence 0.00 (initializing)."),
    ),
    (
        "learning_end_session",
        {"session_id": "agent-123", "min_performance": 0.5, "create_skill": False},
        lambda text, data: data["meets_skill_bar"] and not data["skill_created"]
        and "skill_id" not in data,
    ),
    (
        "learning_end_session",
        {"session_id": "agent-123", "min_performance": 0.5},
        lambda text, data: data["model_saved"] and data["model_path"] in text
        and data["skill_created"] and data["skill_id"] in text
        and data["meets_skill_bar"] and data["session_duration_ms"] > 0
        and data["final_metrics"]["episodes"] == 3,
    ),
    (
        "learning_start_session",
        {"session_id": "grid", "algorithm": "q_learning",
         "state_space": {"type": "discrete", "n": 3},
         "action_space": {"type": "discrete", "n": 2}},
        lambda text, data: data["algorithm"] == "q_learning",
    ),
    (
        "learning_feedback",
        {"session_id": "grid", "state": 0, "action": 1, "reward": 1, "next_state": 2,
         "done": True},
        lambda text, data: data["model_updated"],
    ),
    (
        "learning_predict",
        {"session_id": "grid", "state": 0},
        lambda text, data: data["action"]["value"] == 1 and len(data["q_values"]) == 2
        and data["q_values"][1] > data["q_values"][0] and text.startswith("1 (confidence "),
    ),
    (
        "learning_train",
        {"session_id": "grid", "num_steps": 5},
        lambda text, data: data["steps_completed"] == 5 and data["updates"] > 0
        and data["metrics"]["avg_loss"] >= 0 and data["metrics"]["training_time_ms"] > 0,
    ),
    (
        "learning_train",
        {"session_id": "grid", "num_steps": 5, "batch_size": 2},
        lambda text, data: data["steps_completed"] == 5 and data["updates"] == 10,
    ),
    (
        "learning_start_session",
        {"session_id": "grid-2", "algorithm": "q_learning",
         "state_space": {"type": "discrete", "n": 3},
         "action_space": {"type": "discrete", "n": 2}},
        lambda text, data: data["session_id"] == "grid-2",
    ),
    (
        "learning_transfer",
        {"source_session_id": "grid", "target_session_id": "grid-2", "transfer_type": "full",
         "similarity_threshold": 0.5},
        lambda text, data: data["parameters_transferred"] > 0 and data["task_similarity"] >= 0.5
        and data["worth"].startswith("The target has no steps yet") and data["worth"] in text
        and "improvement" not in data,
    ),
    (
        "reward_signal",
        {"session_id": "grid", "extrinsic_reward": 1.0, "state": 0, "shaping_type": "novelty",
         "shaping_weight": 0.5},
        lambda text, data: data["components"]["novelty_bonus"] == 1
        and (data["intrinsic_reward"], data["shaped_reward"]) == (0.5, 1.5)
        and text.startswith("1.5 (1 + 0.5 for novelty)"),
    ),
    (
        "learning_explain",
        {"session_id": "grid", "state": 0, "action": 1},
        lambda text, data: data["explanation"]["chosen_action"] == 1
        and "is too little to tell" in text and not data["explanation"]["feature_importance"]
        and text == "\n".join(data["explanation"]["decision_path"]),
    ),
    (
        "mneme_remember",
        {"text": "Ann wants her invoices by post", "user_id": "ann", "tags": "billing"},
        lambda text, data: data["id"].startswith("memory ") and data["id"] in text
        and not data["already_known"],
    ),
    (
        "mneme_recall",
        {"query": "how does Ann want her invoices", "user_id": "ann", "limit": "5"},
        lambda text, data: data["results"][0]["text"] == "Ann wants her invoices by post"
        and data["results"][0]["id"] in text,
    ),
    (
        "mneme_remember",
        {"text": "Ann wants her invoices by email", "user_id": "ann", "replaces": ["$id"]},
        lambda text, data: data["replaced"][0].startswith("memory ") and "It replaces" in text,
    ),
    (
        "mneme_context",
        {"query": "how does Ann want her invoices", "user_id": "ann", "token_budget": 500},
        lambda text, data: "by email" in text and "by post" not in text
        and data["token_count"] <= 500,
    ),
    (
        "mneme_get",
        {"id": "$id"},
        lambda text, data: data["kind"] == "memory" and data["item"]["user_id"] == "ann"
        and "text > Ann wants her invoices by email" in text,
    ),
    (
        "mneme_update",
        {"id": "$id", "text": "Ann wants her invoices by e-mail"},
        lambda text, data: data["text"] == "Ann wants her invoices by e-mail",
    ),
    (
        "mneme_forget",
        {"id": "$id"},
        lambda text, data: not data["forgotten"] and "Nothing is forgotten yet" in text,
    ),
    (
        "mneme_forget",
        {"id": "$id", "final": "true"},
        lambda text, data: data["forgotten"] and data["holds_again"][0].startswith("memory "),
    ),
    (
        "mneme_get",
        {"id": "session auth-1"},
        lambda text, data: data["item"]["user_id"] == "user123"
        and "token expired" in data["events"][0]["error"],
    ),
]  # fmt: skip
