"""Decision transformer: Chen et al., "Decision transformer: reinforcement learning via sequence
modeling", 2021.

From recorded episodes it learns which action was taken in a state when so much was still to be
gained (the return-to-go), as a language model learns the next word. Asked for a high return, it
does what was done where the return was high.

Unlike in the paper, positions count from where what it looks at begins, not from where the episode
did: it can be asked in the midst of an episode that it has not seen.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from mneme_server.common.errors import FailedPrecondition
from mneme_server.features.learning.algorithms.algorithm import MOST_OPEN, UpdateSummary
from mneme_server.features.learning.deep.setup import RECORDED_AT_ONCE, Batch, Setup, joined, part
from mneme_server.features.learning.deep.training.networks import Arrays, arrays_of, step, tensor
from mneme_server.features.learning.deep.training.trainer import Certainty, Trainer, Update, summary

_MOST_NORM = 0.25
_DECAY = 1e-4
_TOKENS = 3


class DecisionTransformer(Trainer):
    """Learns which actions were taken on the way to so high a return."""

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.episodes = EpisodeBuffer(setup, setup.whole("buffer_size"))
        self.certainty = Certainty()
        self.model = Transformer(setup, self.chance)
        self.optimiser = torch.optim.AdamW(
            self.model.parameters(),
            lr=setup.number("learning_rate"),
            weight_decay=_DECAY,
            fused=True,
        )
        self.modules = {"model": self.model}
        self.optimisers = {"model": self.optimiser}
        self._box = (torch.from_numpy(setup.middle), torch.from_numpy(setup.half))

    def wants(self) -> int:
        """See `Trainer`. It only keeps them until it is told to train."""
        return RECORDED_AT_ONCE

    def learn(self, batch: Batch) -> UpdateSummary:
        """See `Trainer`."""
        self.scaling.see(batch.states)
        self.episodes.add(batch)
        return UpdateSummary()

    def train(self, steps: int, batch: int = 0) -> UpdateSummary:
        """See `Trainer`."""
        if not len(self.episodes):
            raise FailedPrecondition(
                "there are no episodes to train on yet: one counts from its last transition on,"
                " which is terminated or truncated"
            )
        size, length = batch or self.setup.whole("batch_size"), self.setup.whole("context")
        return summary(
            [self.update(self.episodes.windows(size, length, self.chance)) for _ in range(steps)]
        )

    def update(self, windows: Windows) -> Update:
        """Take a step on windows of episodes."""
        loss = self.loss(windows)
        norm = step(self.optimiser, loss, list(self.model.parameters()), _MOST_NORM)
        return Update(loss.item(), None, norm)

    def loss(self, windows: Windows) -> Tensor:
        """Return how badly the actions that were taken are foretold: their cross entropy, in a box
        the mean squared error, of halves of its width."""
        returns = windows.returns / self.episodes.unit
        states = self.scaling(windows.states)
        if not self.setup.continuous:
            taken = functional.one_hot(windows.actions, self.actions).float()
            logits = self.model(returns, states, taken)[windows.real]
            return functional.cross_entropy(logits, windows.actions[windows.real])
        inside = (windows.actions - self._box[0]) / self._box[1]
        foretold = self.model(returns, states, inside).tanh()[windows.real]
        taken = inside[windows.real]
        loss: Tensor = ((foretold - taken) ** 2).mean()
        self.certainty.note(loss.item(), float(taken.var(dim=0, correction=0).mean()))
        return loss

    def weights(self) -> Arrays:
        """See `Trainer`."""
        told = {
            "unit": np.array(self.episodes.unit, np.float32),
            "best": np.array(self.episodes.best, np.float32),
            "certainty": self.certainty.share(),
        }
        return {**arrays_of(self.model), **self.scaling.weights(), **told}

    def grow(self, actions: int) -> None:
        """See `Trainer`. It knows only the actions that it began with."""

    def freeze(self) -> None:
        """See `Trainer`. Only what makes actions of the last block's output still learns."""
        super().freeze()
        self.model.requires_grad_(requires_grad=False)
        self.model.last_norm.requires_grad_(requires_grad=True)
        self.model.head.requires_grad_(requires_grad=True)

    def dump(self) -> dict[str, Any]:
        """See `Trainer`."""
        kept = {"episodes": self.episodes.dump(), "certainty": self.certainty.dump()}
        return {**super().dump(), **kept}

    def load(self, state: Mapping[str, Any]) -> None:
        """See `Trainer`."""
        super().load(state)
        self.episodes.load(state["episodes"])
        self.certainty.load(state["certainty"])


class Transformer(nn.Module):
    """A causal transformer over returns-to-go, states and actions by turns, as
    `transformer.foretold` computes it.

    Args:
        setup: the sizes.
        chance: what the weights are drawn with.
    """

    def __init__(self, setup: Setup, chance: torch.Generator) -> None:
        super().__init__()
        size = setup.whole("hidden_size")
        self.heads = setup.whole("heads")
        self.returns = nn.Linear(1, size)
        self.states = nn.Linear(setup.inputs, size)
        self.actions = nn.Linear(setup.actions, size)
        self.positions = nn.Parameter(torch.zeros(setup.whole("context"), size))
        self.norm = nn.LayerNorm(size)
        self.blocks = nn.ModuleList(Block(size) for _ in range(setup.whole("hidden_layers")))
        self.last_norm = nn.LayerNorm(size)
        self.head = nn.Linear(size, setup.actions)
        for name, parameter in self.named_parameters():
            if parameter.ndim > 1:
                near = (
                    0.02
                    if name in {"positions", "head.weight"}
                    else 1 / math.sqrt(parameter.shape[1])
                )
                nn.init.normal_(parameter, 0.0, near, generator=chance)
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)

    def forward(self, returns: Tensor, states: Tensor, actions: Tensor) -> Tensor:
        """Return what is foretold of each action from what came before it, shape (n, length,
        actions).

        Args:
            returns: shape (n, length).
            states: shape (n, length, inputs).
            actions: shape (n, length, actions).
        """
        n, length = returns.shape
        tokens = [self.returns(returns[..., None]), self.states(states), self.actions(actions)]
        placed = torch.stack(tokens, 2) + self.positions[:length, None]
        x: Tensor = self.norm(placed.reshape(n, _TOKENS * length, -1))
        for block in self.blocks:
            x = block(x, self.heads)
        at_states = x.reshape(n, length, _TOKENS, -1)[:, :, 1]
        foretold: Tensor = self.head(self.last_norm(at_states))
        return foretold


class Block(nn.Module):
    """Attention to what came before, then two dense layers; each added to what came in."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(size)
        self.asked = nn.Linear(size, 3 * size)
        self.found = nn.Linear(size, size)
        self.second_norm = nn.LayerNorm(size)
        self.wide = nn.Linear(size, 4 * size)
        self.narrow = nn.Linear(4 * size, size)

    def forward(self, x: Tensor, heads: int) -> Tensor:
        """Return tokens, shape (n, tokens, size), that know of those before them."""
        n, count, size = x.shape
        parts = self.asked(self.norm(x)).reshape(n, count, 3, heads, size // heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        seen = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.found(seen.transpose(1, 2).reshape(n, count, size))
        after: Tensor = x + self.narrow(torch.relu(self.wide(self.second_norm(x))))
        return after


_MOST_BYTES = 32 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Windows:
    """Parts of episodes, n of `length` transitions; after the end of an episode come zeros.

    Args:
        returns: what was still to be gained before each transition, shape (n, length).
        states: shape (n, length, inputs).
        actions: shape (n, length), or (n, length, actions) in a box.
        real: which are transitions and not zeros, shape (n, length).
    """

    returns: Tensor
    states: Tensor
    actions: Tensor
    real: Tensor


class EpisodeBuffer:
    """The latest episodes that ended, from which windows are drawn; the oldest make way.

    Args:
        setup: how large transitions are.
        capacity: how many at most; fewer where they are large, so that all fit into 32 MiB.
    """

    def __init__(self, setup: Setup, capacity: int) -> None:
        actions = setup.actions if setup.continuous else 2
        self._capacity = min(capacity, _MOST_BYTES // (4 * (setup.inputs + actions + 2)))
        shape = (0, setup.actions) if setup.continuous else (0,)
        kind = np.float32 if setup.continuous else np.int64
        self._states = np.zeros((0, setup.inputs), np.float32)
        self._actions: NDArray[Any] = np.zeros(shape, kind)
        self._returns = np.zeros(0, np.float32)
        self._ends = np.zeros(0, np.int64)  # Of each transition: where the next episode begins.
        self._open: dict[str, list[Batch]] = {}

    def __len__(self) -> int:
        """Return how many transitions there are, of episodes that ended."""
        return len(self._returns)

    @property
    def best(self) -> float:
        """The highest return of an episode."""
        return float(self._starts().max()) if len(self) else 0.0

    @property
    def unit(self) -> float:
        """What returns are divided by, so that they are of the size of 1."""
        size = float(np.abs(self._returns).max()) if len(self) else 0.0
        return size if size > 1e-6 else 1.0

    def _starts(self) -> NDArray[np.float32]:
        """Return the returns of whole episodes."""
        first = np.concatenate([[0], np.unique(self._ends)[:-1]])
        found: NDArray[np.float32] = self._returns[first]
        return found

    def add(self, batch: Batch) -> None:
        """Gather transitions; an episode is kept when its last one comes."""
        whole: list[Batch] = []
        for name in dict.fromkeys(batch.actors):
            own = np.array([row for row, actor in enumerate(batch.actors) if actor == name])
            parts = self._open.pop(name, [])
            for rows in np.split(own, np.flatnonzero(batch.ends[own]) + 1):
                if len(rows):
                    parts.append(part(batch, rows))
                if len(rows) and batch.ends[rows[-1]]:
                    whole.append(joined(parts))
                    parts = []
            if parts:
                self._open[name] = parts  # The latest comes last.
                if len(self._open) > MOST_OPEN:
                    del self._open[next(iter(self._open))]
        if whole:
            self._keep(whole)

    def _keep(self, whole: list[Batch]) -> None:
        lengths = [len(one) for one in whole]
        ends = len(self) + np.repeat(np.cumsum(lengths), lengths)
        returns = [one.rewards[::-1].cumsum()[::-1] for one in whole]
        self._states = np.concatenate([self._states, *(one.states for one in whole)])
        self._actions = np.concatenate([self._actions, *(one.actions for one in whole)])
        self._returns = np.concatenate([self._returns, *returns]).astype(np.float32)
        self._ends = np.concatenate([self._ends, ends])
        self._make_way()

    def _make_way(self) -> None:
        """Forget the oldest episodes; the latest stays, however long it is."""
        over = len(self) - self._capacity
        if over <= 0:
            return
        begins = [0, *np.unique(self._ends).tolist()][:-1]
        cut = next((begin for begin in begins if begin >= over), begins[-1])
        self._states, self._actions = self._states[cut:], self._actions[cut:]
        self._returns, self._ends = self._returns[cut:], self._ends[cut:] - cut

    def windows(self, count: int, length: int, chance: torch.Generator) -> Windows:
        """Draw windows; each transition is as likely as any other to be the first of one."""
        first = torch.randint(len(self), (count,), generator=chance).numpy()
        places = first[:, None] + np.arange(length)
        real = places < self._ends[first][:, None]
        places = np.where(real, places, 0)
        states = self._states[places]
        states[~real] = 0
        return Windows(
            returns=tensor(np.where(real, self._returns[places], np.float32(0))),
            states=tensor(states),
            actions=tensor(self._actions[places]),
            real=tensor(real),
        )

    def dump(self) -> dict[str, Any]:
        """Return them, as JSON and arrays."""
        return {
            "states": self._states,
            "actions": self._actions,
            "returns": self._returns,
            "ends": self._ends,
            "open": {name: joined(parts).told() for name, parts in self._open.items()},
        }

    def load(self, kept: Mapping[str, Any]) -> None:
        """Take over what `dump` returned."""
        self._states, self._actions = kept["states"].copy(), kept["actions"].copy()
        self._returns, self._ends = kept["returns"].copy(), kept["ends"].copy()
        self._open = {name: [Batch(**told)] for name, told in kept["open"].items()}
