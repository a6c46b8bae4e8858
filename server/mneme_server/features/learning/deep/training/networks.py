"""Networks and optimisers, and how they are laid down and grow."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

Arrays = dict[str, NDArray[Any]]


class Network(nn.ModuleList):
    """Dense layers, rectified in between; as `policies.network` computes it.

    Args:
        sizes: of the input, each hidden layer, the output.
        chance: what the weights are drawn with.
        last: how large those of the last layer are, of those of an orthogonal matrix.
    """

    def __init__(self, sizes: Sequence[int], chance: torch.Generator, last: float = 1.0) -> None:
        layers = [nn.Linear(a, b) for a, b in pairwise(sizes)]
        super().__init__(layers)
        for place, layer in enumerate(layers):
            gain = last if place == len(layers) - 1 else math.sqrt(2)
            nn.init.orthogonal_(layer.weight, gain, generator=chance)
            nn.init.zeros_(layer.bias)

    def forward(self, x: Tensor) -> Tensor:
        """Return the outputs, shape (n, last size)."""
        for place, layer in enumerate(self):
            x = layer(torch.relu(x) if place else x)
        return x

    def freeze(self) -> None:
        """Have all layers but the last stay as they are."""
        for layer in list(self)[:-1]:
            layer.requires_grad_(requires_grad=False)

    def grow(
        self, outputs: int, optimiser: torch.optim.Optimizer | None, above: float = 0.0
    ) -> None:
        """Have more outputs. New ones are `above` the mean of those that there are."""
        last = self[-1]
        assert isinstance(last, nn.Linear)
        missing = outputs - last.out_features
        if missing <= 0:
            return
        last.out_features = outputs
        for parameter in (last.weight, last.bias):
            new = parameter.data.mean(0, keepdim=True).expand(missing, *parameter.shape[1:])
            if parameter is last.bias:
                new = new + above
            parameter.data = torch.cat([parameter.data, new])
            parameter.grad = None
            known = optimiser.state.get(parameter, {}) if optimiser is not None else {}
            for name, value in known.items():
                if value.ndim:  # Not the count of steps.
                    zeros = torch.zeros(missing, *value.shape[1:])
                    known[name] = torch.cat([value, zeros])


def adam(parameters: Sequence[Tensor], rate: float, epsilon: float = 1e-8) -> torch.optim.Adam:
    """Return an optimiser for small networks on one processor."""
    return torch.optim.Adam(parameters, lr=rate, eps=epsilon, fused=True)


def rmsprop(parameters: Sequence[Tensor], rate: float) -> torch.optim.RMSprop:
    """Return the optimiser of Mnih et al., 2016, with its decay.

    It has no momentum: gradients of actors that do not wait for each other make some of their own
    (Mitliagkas et al., "Asynchrony begets momentum", 2016).
    """
    return torch.optim.RMSprop(parameters, lr=rate, alpha=0.99, eps=1e-5)


def follow(target: nn.Module, source: nn.Module, rate: float) -> None:
    """Move the weights of a target towards those of the network that it follows."""
    with torch.no_grad():
        torch._foreach_lerp_(list(target.parameters()), list(source.parameters()), rate)


def arrays_of(module: nn.Module, prefix: str = "") -> Arrays:
    """Return a copy of the weights of a module, by name."""
    named = module.state_dict().items()
    return {prefix + name: value.numpy().copy() for name, value in named}


def restore(module: nn.Module, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Give a module weights that `arrays_of` returned."""
    module.load_state_dict({name: torch.from_numpy(array) for name, array in arrays.items()})


def optimiser_arrays(optimiser: torch.optim.Optimizer) -> dict[str, Arrays]:
    """Return a copy of an optimiser's state, by the place of the weights that it is for."""
    state = optimiser.state_dict()["state"]
    return {
        str(place): {name: value.numpy().copy() for name, value in known.items()}
        for place, known in state.items()
    }


def restore_optimiser(
    optimiser: torch.optim.Optimizer, arrays: Mapping[str, Mapping[str, NDArray[Any]]]
) -> None:
    """Give an optimiser the state that `optimiser_arrays` returned."""
    state = {
        int(place): {name: torch.from_numpy(array) for name, array in known.items()}
        for place, known in arrays.items()
    }
    optimiser.load_state_dict({**optimiser.state_dict(), "state": state})


def step(
    optimiser: torch.optim.Optimizer, loss: Tensor, parameters: Sequence[Tensor], most: float
) -> float:
    """Take a step down a loss; return the norm of the gradient, which is cut off at `most`.

    Where it is not finite no step is taken.
    """
    optimiser.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    norm = float(nn.utils.clip_grad_norm_(parameters, most))
    if math.isfinite(norm):
        optimiser.step()
    return norm


def tensor(array: NDArray[Any]) -> Tensor:
    """Return an array as a tensor that shares its memory."""
    return torch.from_numpy(np.ascontiguousarray(array))
