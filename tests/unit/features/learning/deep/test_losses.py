"""The losses against those of torchrl, and by hand where its are drawn at random inside."""

from __future__ import annotations

import copy
import math
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="the extra `rl` is not installed")
pytest.importorskip("torchrl", reason="torchrl, which the losses are held against, is missing")

import torch
from mneme_server.features.learning.deep.setup import Setup
from mneme_server.features.learning.deep.training.ddpg_td3 import Ddpg, Td3
from mneme_server.features.learning.deep.training.dqn import Dqn
from mneme_server.features.learning.deep.training.ppo_a3c import (
    A2c,
    A3c,
    ActorCriticNetworks,
    Ppo,
    RolloutTensors,
    advantages,
    squashed_log_density,
)
from mneme_server.features.learning.deep.training.sac import Sac
from mneme_server.features.learning.deep.training.trainer import ReplaySample
from support.deep import config_of

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from tensordict import TensorDict
    from tensordict.nn import ProbabilisticTensorDictModule as Drawn
    from tensordict.nn import ProbabilisticTensorDictSequential as InOrder
    from tensordict.nn import TensorDictModule
    from torchrl.modules import Actor, ValueOperator
    from torchrl.modules.tensordict_module import QValueActor
    from torchrl.objectives import A2CLoss, ClipPPOLoss, DDPGLoss, DQNLoss, ValueEstimators
    from torchrl.objectives.value.functional import generalized_advantage_estimate

pytestmark = pytest.mark.filterwarnings("ignore:No target network updater")

N, INPUTS, DISCOUNT = 40, 3, 0.97
NEAR = {"rel": 1e-5, "abs": 1e-6}


def setup(name: str, actions: int, half: float | None = None, **settings: Any) -> Setup:
    box = np.full(0 if half is None else actions, half or 0.0, np.float32)
    config = config_of(name, discount_factor=DISCOUNT, **settings)
    return Setup(name, INPUTS, np.zeros(INPUTS, bool), False, actions, 0 * box, box, config, 1)


@pytest.mark.parametrize("known", [1, 2, 5])
def test_a_new_action_is_as_probable_as_the_others_on_average_however_sure_the_policy_is(
    known: int,
) -> None:
    networks = ActorCriticNetworks(setup("ppo", known), torch.Generator().manual_seed(1))
    states = torch.randn(N, INPUTS, generator=torch.Generator().manual_seed(2))
    with torch.no_grad():
        networks.policy[-1].bias[0] += 8.0  # Nearly certain.
    networks.grow(known + 1, None, networks.fair(states))
    policy = networks.policy(states).softmax(1)
    assert float(policy[:, known].detach().mean()) == pytest.approx(1 / (known + 1), rel=0.05)


def sample(actions: Any) -> ReplaySample:
    chance = torch.Generator().manual_seed(7)
    return ReplaySample(
        states=torch.randn(N, INPUTS, generator=chance),
        actions=actions,
        rewards=torch.randn(N, generator=chance),
        next_states=torch.randn(N, INPUTS, generator=chance),
        goes_on=(torch.rand(N, generator=chance) < 0.8).float(),
        allowed=None,
    )


def as_tensordict(drawn: ReplaySample, actions: Any) -> Any:
    done = drawn.goes_on[:, None] == 0
    following = {
        "observation": drawn.next_states,
        "reward": drawn.rewards[:, None],
        "done": done,
        "terminated": done,
    }
    return TensorDict({"observation": drawn.states, "action": actions, "next": following}, [N])


def shaken(*networks: Any) -> None:
    """Make networks that begin alike, or near zero, differ."""
    chance = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for network in networks:
            for parameter in network.parameters():
                parameter.add_(0.3 * torch.randn(parameter.shape, generator=chance))


def test_double_q_learning_is_torchrls() -> None:
    trainer = Dqn(setup("dqn", 4))
    shaken(trainer.values, trainer.target)
    drawn = sample(torch.randint(4, (N,), generator=torch.Generator().manual_seed(1)))

    network = QValueActor(trainer.values, in_keys=["observation"], action_space="categorical")
    reference = DQNLoss(
        network, action_space="categorical", double_dqn=True, delay_value=True, loss_function="l2"
    )
    reference.make_value_estimator(ValueEstimators.TD0, gamma=DISCOUNT)
    moved = zip(
        reference.target_value_network_params.values(True, True),
        TensorDict.from_module(trainer.target).values(True, True),
        strict=True,
    )
    for theirs, ours in moved:
        theirs.data.copy_(ours.data)

    worth, targets = trainer.errors(drawn)
    found = reference(as_tensordict(drawn, drawn.actions))["loss"]
    assert ((worth - targets) ** 2).mean().item() == pytest.approx(found.item(), **NEAR)


def test_actions_that_are_not_allowed_do_not_count_as_what_follows() -> None:
    trainer = Dqn(setup("dqn", 3))
    shaken(trainer.values, trainer.target)
    drawn = sample(torch.zeros(N, dtype=torch.int64))
    only_last = torch.zeros(N, 3, dtype=torch.bool)
    only_last[:, 2] = True

    masked = ReplaySample(
        drawn.states, drawn.actions, drawn.rewards, drawn.next_states, drawn.goes_on, only_last
    )
    _, targets = trainer.errors(masked)

    last = trainer.target(drawn.next_states)[:, 2]
    expected = drawn.rewards + DISCOUNT * drawn.goes_on * last
    assert torch.allclose(targets, expected)


def test_advantages_are_torchrls_for_each_actor_though_they_come_mixed() -> None:
    chance = np.random.default_rng(1)
    rewards, values, following = chance.normal(size=(3, 2, N)).astype(np.float32)
    terminated, truncated = chance.random((2, 2, N)) < 0.1

    order = chance.permutation(np.repeat([0, 1], N))
    places = np.zeros(2 * N, int)
    for actor in (0, 1):
        places[order == actor] = np.arange(N)
    follows = np.where(terminated, 0, following)
    found = advantages(
        rewards=rewards[order, places],
        values=values[order, places],
        following=follows[order, places].astype(np.float32),
        ends=(terminated | truncated)[order, places],
        actors=[str(actor) for actor in order],
        discount=DISCOUNT,
        decay=0.9,
    )

    for actor in (0, 1):
        expected, _ = generalized_advantage_estimate(
            DISCOUNT,
            0.9,
            torch.tensor(values[actor])[:, None],
            torch.tensor(following[actor])[:, None],
            torch.tensor(rewards[actor])[:, None],
            torch.tensor(terminated | truncated)[actor][:, None],
            torch.tensor(terminated)[actor][:, None],
        )
        assert found[order == actor] == pytest.approx(expected[:, 0].numpy(), rel=1e-4, abs=1e-5)


def experience(trainer: A2c | Ppo) -> RolloutTensors:
    chance = torch.Generator().manual_seed(5)
    states = torch.randn(N, INPUTS, generator=chance)
    actions = torch.randint(4, (N,), generator=chance)
    with torch.no_grad():
        likely, _ = trainer.networks.likelihood(states, actions, None)
    return RolloutTensors(
        states=states,
        actions=actions,
        log_probability=likely + 0.3 * torch.randn(N, generator=chance),
        available=None,
        advantage=torch.randn(N, generator=chance),
        worth=torch.randn(N, generator=chance),
    )


def reference_actor(trainer: A2c | Ppo) -> tuple[Any, Any]:
    logits = TensorDictModule(trainer.networks.policy, in_keys=["observation"], out_keys=["logits"])
    drawn = Drawn(
        in_keys=["logits"],
        out_keys=["action"],
        distribution_class=torch.distributions.Categorical,
        return_log_prob=True,
    )
    return InOrder(logits, drawn), ValueOperator(trainer.networks.critic, ["observation"])


def told(had: RolloutTensors) -> Any:
    return TensorDict(
        {
            "observation": had.states,
            "action": had.actions,
            "action_log_prob": had.log_probability,
            "advantage": had.advantage[:, None],
            "value_target": had.worth[:, None],
        },
        [N],
    )


def test_the_clipped_objective_is_torchrls() -> None:
    trainer = Ppo(setup("ppo", 4, entropy_weight=0.01, value_weight=0.7))
    shaken(trainer.networks)
    had = experience(trainer)

    actor, critic = reference_actor(trainer)
    reference = ClipPPOLoss(
        actor,
        critic,
        clip_epsilon=0.2,
        entropy_coeff=0.01,
        critic_coeff=0.7,
        loss_critic_type="l2",
        normalize_advantage=True,
    )
    found = reference(told(had))

    loss, _ = trainer.loss(had)
    expected = found["loss_objective"] + found["loss_critic"] + found["loss_entropy"]
    assert loss.item() == pytest.approx(expected.item(), rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("kind", [A2c, A3c])
def test_the_loss_of_an_actor_and_critic_is_torchrls_where_it_behaved_itself(kind: Any) -> None:
    trainer = kind(setup("actor_critic", 4, entropy_weight=0.01, value_weight=0.7))
    shaken(trainer.networks)
    had = experience(trainer)
    with torch.no_grad():
        likely, _ = trainer.networks.likelihood(had.states, had.actions, None)
    own = RolloutTensors(had.states, had.actions, likely, None, had.advantage, had.worth)
    trainer.certainty.note(error=2.5, variance=1.0)
    of_unit_size = replace(own, advantage=had.advantage / trainer.surprise)

    actor, critic = reference_actor(trainer)
    reference = A2CLoss(actor, critic, entropy_coeff=0.01, critic_coeff=0.7, loss_critic_type="l2")
    found = reference(told(of_unit_size))

    loss = trainer.loss(own, trainer.networks)
    expected = found["loss_objective"] + found["loss_critic"] + found["loss_entropy"]
    assert loss.item() == pytest.approx(expected.item(), rel=1e-4, abs=1e-5)


def test_what_another_policy_did_counts_by_the_ratio_and_at_most_once() -> None:
    trainer = A2c(setup("actor_critic", 4, entropy_weight=0.0, value_weight=0.0))
    shaken(trainer.networks)
    had = experience(trainer)

    likely, _ = trainer.networks.likelihood(had.states, had.actions, None)
    ratio = (likely - had.log_probability).exp().clamp(max=1)
    trainer.certainty.note(error=4.0, variance=1.0)
    advantage = had.advantage / 2
    expected = -(ratio.detach() * advantage * likely).mean()
    assert trainer.loss(had, trainer.networks).item() == pytest.approx(expected.item(), **NEAR)


def test_ddpgs_losses_are_torchrls() -> None:
    trainer = Ddpg(setup("ddpg", 2, half=1.0))
    shaken(trainer.policy, trainer.critics, trainer.targets, trainer.slow_policy)
    drawn = sample(torch.rand(N, 2, generator=torch.Generator().manual_seed(2)) * 2 - 1)

    class Squashed(torch.nn.Module):
        def __init__(self, network: Any) -> None:
            super().__init__()
            self.network = network

        def forward(self, states: Any) -> Any:
            return self.network(states).tanh()

    class Critic(torch.nn.Module):
        def __init__(self, network: Any) -> None:
            super().__init__()
            self.network = network

        def forward(self, states: Any, actions: Any) -> Any:
            return self.network(torch.cat([states, actions], -1))

    reference = DDPGLoss(
        Actor(Squashed(trainer.policy), in_keys=["observation"]),
        ValueOperator(Critic(trainer.critics.each[0]), in_keys=["observation", "action"]),
        loss_function="l2",
        delay_actor=True,
        delay_value=True,
    )
    reference.make_value_estimator(ValueEstimators.TD0, gamma=DISCOUNT)
    _copied(reference.target_value_network_params, Critic(trainer.targets.each[0]))
    _copied(reference.target_actor_network_params, Squashed(trainer.slow_policy))
    found = reference(as_tensordict(drawn, drawn.actions))

    thought = trainer.critics(drawn.states, drawn.actions)[0]
    loss = ((thought - trainer.worth(drawn)) ** 2).mean()
    policy = -trainer.critics(drawn.states, trainer.policy(drawn.states).tanh())[0].mean()
    assert loss.item() == pytest.approx(found["loss_value"].item(), rel=1e-4)
    assert policy.item() == pytest.approx(found["loss_actor"].item(), rel=1e-4)


def test_td3_believes_the_more_careful_critic_of_a_blurred_action() -> None:
    trainer = Td3(setup("td3", 2, half=1.0, target_noise=0.3, target_noise_limit=0.4))
    shaken(trainer.targets, trainer.slow_policy)
    drawn = sample(torch.zeros(N, 2))
    blur = torch.randn(N, 2, generator=torch.Generator().manual_seed(4))

    found = trainer.worth(drawn, blur).numpy()

    action = np.tanh(trainer.slow_policy(drawn.next_states).detach().numpy())
    action = np.clip(action + np.clip(0.3 * blur.numpy(), -0.4, 0.4), -1, 1)
    both = torch.cat([drawn.next_states, torch.from_numpy(action)], 1)
    first, second = (critic(both)[:, 0].detach().numpy() for critic in trainer.targets.each)
    onward = DISCOUNT * drawn.goes_on.numpy() * np.minimum(first, second)
    assert found == pytest.approx(drawn.rewards.numpy() + onward, rel=1e-4, abs=1e-5)


def test_td3s_policy_learns_at_every_second_step_and_what_targets_come_from_follows() -> None:
    trainer = Td3(setup("td3", 2, half=1.0, policy_every=2, target_rate=0.25))
    drawn = sample(torch.rand(N, 2, generator=torch.Generator().manual_seed(2)) * 2 - 1)
    for trainer.updates in range(4):
        before, after = _weights(trainer), _weights_after(trainer, drawn)
        moved = {name for name in after if not torch.equal(after[name], before[name])}
        if trainer.updates % 2:
            assert moved == {"critics"}
            continue
        assert moved == set(trainer.modules)
        for slow, quick in (("targets", "critics"), ("slow_policy", "policy")):
            assert torch.allclose(after[slow], 0.75 * before[slow] + 0.25 * after[quick], atol=1e-6)


@pytest.mark.parametrize("kind", [Ddpg, Sac])
def test_the_critics_that_targets_come_from_follow_at_each_step(kind: Any) -> None:
    trainer = kind(setup(kind.__name__.lower(), 2, half=1.0, target_rate=0.25))
    drawn = sample(torch.rand(N, 2, generator=torch.Generator().manual_seed(2)) * 2 - 1)
    before, after = _weights(trainer), _weights_after(trainer, drawn)
    expected = 0.75 * before["targets"] + 0.25 * after["critics"]
    assert torch.allclose(after["targets"], expected, atol=1e-6)


def test_a_step_of_dqn_is_one_of_torchs_adam_and_its_target_follows() -> None:
    trainer = Dqn(setup("dqn", 4, target_rate=0.25, learning_rate=0.01))
    shaken(trainer.values, trainer.target)
    drawn = sample(torch.randint(4, (N,), generator=torch.Generator().manual_seed(1)))
    before = _weights(trainer)
    copied = copy.deepcopy(trainer.values)
    optimiser = torch.optim.Adam(copied.parameters(), lr=0.01)
    _, targets = trainer.errors(drawn)
    worth = copied(drawn.states).gather(1, drawn.actions[:, None]).squeeze(1)
    ((worth - targets) ** 2).mean().backward()
    optimiser.step()

    after = _weights_after(trainer, drawn)

    assert torch.allclose(after["values"], _flat(copied), atol=1e-5)
    expected = 0.75 * before["target"] + 0.25 * after["values"]
    assert torch.allclose(after["target"], expected, atol=1e-6)


def test_twin_critics_learn_each_from_its_own_squared_error() -> None:
    trainer = Td3(setup("td3", 2, half=1.0))
    drawn = sample(torch.rand(N, 2, generator=torch.Generator().manual_seed(2)) * 2 - 1)
    both = torch.cat([drawn.states, drawn.actions], 1)
    losses = [((one(both)[:, 0] - drawn.rewards) ** 2).mean() for one in trainer.critics.each]
    gradient = torch.autograd.grad(sum(losses), list(trainer.critics.parameters()))

    loss, _, norm = trainer.teach_critics(drawn.states, drawn.actions, drawn.rewards)

    assert loss == pytest.approx(sum(one.item() for one in losses), rel=1e-5)
    assert norm == pytest.approx(math.sqrt(sum(float((g**2).sum()) for g in gradient)), rel=1e-4)


def test_sacs_policy_goes_where_the_more_careful_critic_rises_and_stays_undecided() -> None:
    trainer = Sac(setup("sac", 2, half=1.0, entropy_weight=0.3))
    shaken(trainer.policy, trainer.critics)
    drawn = sample(torch.zeros(N, 2))
    noise = torch.randn(N, 2, generator=torch.Generator().manual_seed(4))
    actions, log_density = trainer.drawn(drawn.states, noise)
    both = torch.cat([drawn.states, actions], 1)
    careful = torch.minimum(*(critic(both)[:, 0] for critic in trainer.critics.each))
    expected = 0.3 * log_density.mean() - careful.mean()

    found = trainer.policy_loss(drawn.states, actions, log_density)

    assert found.item() == pytest.approx(expected.item(), rel=1e-4, abs=1e-5)


def test_sac_counts_entropy_as_a_reward() -> None:
    trainer = Sac(setup("sac", 2, half=1.0, entropy_weight=0.3))
    shaken(trainer.policy, trainer.critics, trainer.targets)
    drawn = sample(torch.zeros(N, 2))
    noise = torch.randn(N, 2, generator=torch.Generator().manual_seed(4))

    mean, log_deviation = trainer.policy(drawn.next_states).detach().chunk(2, 1)
    deviation = log_deviation.clamp(-5, 2).exp()
    squashed = torch.distributions.TransformedDistribution(
        torch.distributions.Normal(mean.double(), deviation.double()),
        [torch.distributions.transforms.TanhTransform(cache_size=1)],
    )
    raw = mean.double() + deviation.double() * noise
    density = squashed.base_dist.log_prob(raw) - torch.log1p(-(raw.tanh() ** 2))
    actions, log_density = trainer.drawn(drawn.next_states, noise)
    assert actions.detach().numpy() == pytest.approx(raw.tanh().numpy(), abs=1e-6)
    assert log_density.detach().numpy() == pytest.approx(density.sum(1).numpy(), rel=1e-3, abs=1e-3)

    both = torch.cat([drawn.next_states, actions], 1)
    careful = torch.minimum(*(critic(both)[:, 0] for critic in trainer.targets.each))
    onward = DISCOUNT * drawn.goes_on * (careful - 0.3 * log_density)
    expected = (drawn.rewards + onward).detach().numpy()
    assert trainer.worth(drawn, noise).numpy() == pytest.approx(expected, rel=1e-4, abs=1e-4)


def test_sac_moves_the_weight_of_entropy_towards_its_target() -> None:
    trainer = Sac(setup("sac", 2, half=1.0, entropy_weight=0.3))
    undecided, decided = torch.full((N,), -3.0), torch.full((N,), 4.0)  # The target is 2.
    for log_density, sign in ((undecided, 1), (decided, -1)):
        trainer.temperature.zero_grad()
        trainer.temperature_loss(log_density).backward()
        assert math.copysign(1, trainer.temperature.log.grad.item()) == sign


def test_the_density_of_squashed_actions_is_that_of_torchs_distributions() -> None:
    chance = torch.Generator().manual_seed(1)
    inside = torch.rand(N, 2, generator=chance) * 1.8 - 0.9
    means, log_deviation = torch.randn(N, 2, generator=chance), torch.tensor([-0.5, 0.2])
    half = torch.tensor([2.0, 0.5])

    found = squashed_log_density(inside, means, log_deviation, half)

    transforms = [
        torch.distributions.transforms.TanhTransform(),
        torch.distributions.transforms.AffineTransform(0.0, half),
    ]
    normal = torch.distributions.Normal(means, log_deviation.exp())
    squashed = torch.distributions.TransformedDistribution(normal, transforms)
    assert found.numpy() == pytest.approx(
        squashed.log_prob(inside * half).sum(1).numpy(), rel=1e-4, abs=1e-4
    )


def _flat(module: Any) -> Any:
    return torch.cat([one.detach().flatten() for one in module.parameters()])


def _weights(trainer: Any) -> dict[str, Any]:
    return {name: _flat(module) for name, module in trainer.modules.items()}


def _weights_after(trainer: Any, drawn: ReplaySample) -> dict[str, Any]:
    trainer.update(drawn)
    return _weights(trainer)


def _copied(params: Any, module: Any) -> None:
    ours = TensorDict.from_module(module)
    for theirs, own in zip(params.values(True, True), ours.values(True, True), strict=True):
        theirs.data.copy_(own.data)
