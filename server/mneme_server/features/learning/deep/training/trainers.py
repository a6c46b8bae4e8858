"""The trainers, by the name of their algorithm."""

from __future__ import annotations

from mneme_server.features.learning.deep.setup import Setup
from mneme_server.features.learning.deep.training.a3c import A3c
from mneme_server.features.learning.deep.training.actor_critic import ActorCritic
from mneme_server.features.learning.deep.training.ddpg import Ddpg
from mneme_server.features.learning.deep.training.decision_transformer import DecisionTransformer
from mneme_server.features.learning.deep.training.dqn import Dqn
from mneme_server.features.learning.deep.training.ppo import Ppo
from mneme_server.features.learning.deep.training.sac import Sac
from mneme_server.features.learning.deep.training.td3 import Td3
from mneme_server.features.learning.deep.training.trainer import Trainer

TRAINERS: dict[str, type[Trainer]] = {
    "dqn": Dqn,
    "actor_critic": ActorCritic,
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
