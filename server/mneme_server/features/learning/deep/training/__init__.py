"""The trainers, with torch, by the name of their algorithm. Only worker processes import them."""

from __future__ import annotations

from mneme_server.features.learning.deep.setup import Setup
from mneme_server.features.learning.deep.training.ddpg_td3 import Ddpg, Td3
from mneme_server.features.learning.deep.training.decision_transformer import DecisionTransformer
from mneme_server.features.learning.deep.training.dqn import Dqn
from mneme_server.features.learning.deep.training.ppo_a3c import A2c, A3c, Ppo
from mneme_server.features.learning.deep.training.sac import Sac
from mneme_server.features.learning.deep.training.trainer import Trainer

TRAINERS: dict[str, type[Trainer]] = {
    "dqn": Dqn,
    "actor_critic": A2c,
    "ppo": Ppo,
    "a3c": A3c,
    "ddpg": Ddpg,
    "sac": Sac,
    "td3": Td3,
    "decision_transformer": DecisionTransformer,
}


def trainer_for(setup: Setup) -> Trainer:
    """Return a new trainer."""
    return TRAINERS[setup.algorithm](setup)
