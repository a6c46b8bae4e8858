"""An agent's whole way through a task: it looks back, chooses, acts, and learns what came of it.

    python examples/agent_workflow.py --address localhost:50051 [--api-key mn_…]

The steps are those of AgentDB's "Complete Agent Workflow", and at the end a certificate of what the
agent's advice rests on. The task itself is simulated: a strategy is good or bad at it. The key
needs the scopes read, write and learn. Checking the certificate needs the extra `verify`.
"""

from __future__ import annotations

import argparse

from mneme import MnemeClient
from mneme.proof import verify_certificate

SESSION = "agent-123"
TASK = "Implement OAuth2 authentication"
STATE = {"task_type": "auth", "complexity": 0.8}
STRATEGIES = ("oauth2_pkce", "oauth2_implicit", "session_cookie")
REWARDS = {"oauth2_pkce": 0.92, "oauth2_implicit": 0.35, "session_cookie": 0.55}
CRITIQUES = {
    "oauth2_pkce": "The PKCE flow prevented the interception of tokens",
    "oauth2_implicit": "Tokens in the URL leaked into logs",
    "session_cookie": "Mobile clients could not use the cookie",
}
SETTLED = 0.8


def main() -> None:
    """Go through the task a number of times, and tell what came of it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--address", default=None)
    parser.add_argument("--api-key", default=None)
    parser.add_argument("--attempts", type=int, default=30)
    given = parser.parse_args()
    with MnemeClient(given.address, api_key=given.api_key) as client:
        run(client, given.attempts)


def run(client: MnemeClient, attempts: int) -> None:
    """Learn which strategy works, and prove what says so."""
    print(f"memory of {client.init_memory().counts.memories} memories")
    client.start_learning_session("linucb", session_id=SESSION, seed=1)
    for number in range(attempts):
        attempt(client, number)
    for _ in client.train(SESSION, num_steps=50):
        pass  # linucb has learned all there is from each reward; others learn again here.
    conclude(client, window=attempts // 3)
    certify(client)
    tell(client)


def attempt(client: MnemeClient, number: int) -> None:
    """Look back, choose a strategy, and tell what came of it."""
    known = client.search_memories(TASK, limit=5, rerank=True).results
    similar = client.retrieve_episodes(TASK, limit=5).results
    failed = client.retrieve_episodes("authentication", filter={"only_failures": True}, limit=3)
    prediction = client.predict(
        SESSION,
        {"json": STATE},
        explore=True,
        allowed_actions=[{"label": strategy} for strategy in STRATEGIES],
    ).prediction
    strategy = prediction.action.label
    reward = REWARDS[strategy]  # Here the agent would do its work.
    client.store_episode(
        episode_id=f"{SESSION}-{number}",
        task=TASK,
        reward=reward,
        success=reward >= 0.7,
        critique=CRITIQUES[strategy],
        tools=[strategy],
        latency_ms=1250,
    )
    client.feedback(prediction_id=prediction.prediction_id, reward=reward)
    print(
        f"{number + 1}: {len(known)} memories, {len(similar)} attempts alike, of which"
        f" {len(failed.results)} failed;"
        f" {strategy} brought {reward}"
    )


def conclude(client: MnemeClient, window: int) -> None:
    """Note what brings what about, make skills of what works, and tell how it went."""
    client.add_edge("oauth2_pkce_strategy", "auth_security_high", uplift=0.25, confidence=0.95)
    metrics = client.get_metrics(SESSION, window_size=window).metrics
    if metrics.convergence_score > SETTLED:
        made = client.consolidate_skills(min_attempts=3, min_reward=0.7)
        print(f"{len(made.skills)} skills from {made.episode_count} episodes")
    best = client.predict(SESSION, {"json": STATE}).prediction
    print(f"best now: {best.action.label} (confidence {best.confidence:.2f})")
    ended = client.end_learning_session(SESSION)
    print(f"learned skill: {ended.skill_id or 'none yet'}")
    print(
        f"{metrics.episodes_completed} episodes, mean reward {metrics.avg_reward:.2f},"
        f" convergence {metrics.convergence_score:.2f}"
    )


def certify(client: MnemeClient) -> None:
    """Have it certified what the advice rests on, and check that without trusting the server.

    Whoever checks must have the key from somebody they trust; asking the server that signed shows
    only that nothing changed on the way.
    """
    made = client.recall_with_certificate(TASK, scopes=["episode", "skill"], limit=5)
    key = client.get_log_keys().keys[-1].verifier_key
    checked = verify_certificate(made.certificate.json, key)
    said = f"{len(checked.items)} results, signed over {checked.checkpoint.size} leaves"
    print(f"certificate verifies: {said}")


def tell(client: MnemeClient) -> None:
    """Tell what there is now."""
    stats = client.get_memory_stats(include_quality=True)
    print(
        f"{stats.counts.episodes} episodes, {stats.counts.skills} skills,"
        f" average reward {stats.quality.average_episode_reward:.2f}"
    )


if __name__ == "__main__":
    main()
