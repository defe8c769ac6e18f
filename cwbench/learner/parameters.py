"""The parameters of R runs at one position: their initial values, names and changes."""

from collections.abc import Collection, Mapping, Sequence

import torch
from torch import Tensor

from cwbench.learner.architecture import Architecture
from cwbench.learner.networks import make_critic
from cwbench.learner.policy import ActorNetwork, make_policy
from cwbench.spec.config import NetworkConfig
from cwbench.spec.transition import Dims


def _targets(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Copies of the critics' parameters, for the target networks."""
    return {f"target.{k}": v.clone() for k, v in state.items() if k.startswith("critic.")}


class Parameters:
    """Actor, critics, temperatures, target networks and value statistics of R runs."""

    def __init__(
        self,
        seeds: Sequence[int],
        position: int,
        *,
        dims: Dims,
        network: NetworkConfig,
        initial_log_alpha: float,
        device: torch.device,
        architecture: type[Architecture] | None = None,
    ) -> None:
        self.seeds, self.runs, self.device = list(seeds), len(seeds), device
        self.position, self.num_tasks = position, position + 1
        self.initial_log_alpha = initial_log_alpha
        self.policy = make_policy(*dims[:2], network, architecture)
        self.critic = make_critic(*dims[:2], network)
        self.networks: dict[str, ActorNetwork] = {
            "actor": self.policy.network,
            "critic": self.critic,
        }
        self.params: dict[str, Tensor] = {}
        self.target: dict[str, Tensor] = {}
        self.value: dict[str, Tensor] = {}  # mean, std of each head's targets: [R, T]

    # Initial values

    def fresh_parameters(self) -> dict[str, Tensor]:
        """Everything a run starts its first task with, without any head."""
        return {
            k: v for net in self.networks.values() for k, v in net.init_trunk(self.seeds).items()
        }

    def fresh_head(self, position: int) -> dict[str, Tensor]:
        """What a task adds: heads, temperature, value statistics."""
        head = {
            name: tensor
            for net in self.networks.values()
            for name, tensor in net.init_head(self.seeds, position).items()
        }
        one = torch.ones(self.runs, 1)
        log_alpha = one * self.initial_log_alpha
        return head | {"log_alpha": log_alpha, "value.mean": 0 * one, "value.std": one.clone()}

    def initial_state(self, inherited: Mapping[str, Tensor] | None = None) -> dict[str, Tensor]:
        """The state of this position's start: the parent's, or fresh weights, and new heads."""
        trunk = self.fresh_parameters()
        state = dict(inherited or trunk | _targets(trunk))
        heads = state["log_alpha"].shape[1] if inherited else 0
        for position in range(heads, self.num_tasks):
            head = self.fresh_head(position)
            for name, new in (head | _targets(head)).items():
                axis = self.task_axis(name.removeprefix("target."))
                state[name] = torch.cat([state[name], new], axis) if name in state else new
        return state

    def task_axis(self, name: str) -> int:
        """The axis of a per-task parameter that counts tasks."""
        network = self.networks.get(name.split(".")[0])
        return network.task_axis if network else 1

    def start(self, inherited: Mapping[str, Tensor] | None = None) -> None:
        """Load the parent's parameters, or fresh ones, with a fresh head for each new task."""
        self.load(self.initial_state(inherited))

    # All of them, under flat names

    def state(self) -> dict[str, Tensor]:
        """Parameters, targets and value statistics under one flat set of names."""
        return {
            **{name: p.detach() for name, p in self.params.items()},
            **{f"target.{name}": p for name, p in self.target.items()},
            **{f"value.{name}": p for name, p in self.value.items()},
        }

    def load(self, state: Mapping[str, Tensor]) -> None:
        """Take over parameters in one fixed order: sums over them must not depend on a file's."""
        tensors = {name: x.to(self.device).contiguous().clone() for name, x in state.items()}
        trained = {"log_alpha": True}
        for net in reversed(self.networks.values()):
            names = net.shapes(self.num_tasks)
            trained = {name: net.trains(name, self.num_tasks) for name in names} | trained
        self.params = {name: tensors[name].requires_grad_(own) for name, own in trained.items()}
        self.target = {name: tensors[f"target.{name}"] for name in self.group("critic")}
        self.value = {name: tensors[f"value.{name}"] for name in ("mean", "std")}

    @property
    def actor_params(self) -> dict[str, Tensor]:
        return {k: p.detach() for k, p in self.params.items() if k.startswith("actor.")}

    @property
    def trained(self) -> dict[str, Tensor]:
        """Parameters that this task trains; an architecture may freeze others."""
        return {name: p for name, p in self.params.items() if p.requires_grad}

    def group(self, name: str) -> list[str]:
        return [key for key in self.params if key.split(".")[0] == name]

    # Changes in place

    def trunk_names(self, network: str) -> list[str]:
        """Parameters of `actor` or `critic` that all tasks share."""
        return [name for name in self.group(network) if not self.networks[network].per_task(name)]

    def fresh_trunk(self, network: str, draw: str) -> dict[str, Tensor]:
        """Shared weights as if new, from numbers named by `draw`: the same in every fleet."""
        with self.device:  # on a GPU this takes milliseconds for 50 runs, on a CPU seconds
            fresh = self.networks[network].init_trunk(self.seeds, draw)
        return {name: x.to(self.device) for name, x in fresh.items()}

    @torch.no_grad()
    def set_parameters(self, values: Mapping[str, Tensor]) -> None:
        """Overwrite parameters in place, and those of the target networks with the same values."""
        for name, value in values.items():
            for table in (self.params, self.target):
                if name in table:
                    table[name].copy_(value)

    def reset(self, parts: Collection[str]) -> None:
        """Reinitialise the actor's shared layers, the critic, or the current position's heads.

        Old heads of the actor stay: some methods keep the shared layers that belong to them.
        """
        for network in self.networks:
            if network in parts:
                self.set_parameters(self.fresh_trunk(network, f"@{self.position}"))
        if "critic" in parts:
            self._reset_critic_heads()
        if "heads" in parts:
            self._set_head(self.position, self.fresh_head(self.position))

    def _reset_critic_heads(self) -> None:
        """All of them, and the scales of their values: features that they read are gone."""
        for position in range(self.num_tasks):
            with self.device:
                self._set_head(position, self.critic.init_head(self.seeds, position))
        self.value["mean"].zero_()
        self.value["std"].fill_(1)

    @torch.no_grad()
    def _set_head(self, position: int, head: Mapping[str, Tensor]) -> None:
        for name, new in head.items():
            for table in (self.params, self.target):
                if name in table:
                    axis = self.task_axis(name)
                    place = min(position, table[name].shape[axis] - 1)
                    table[name].select(axis, place).copy_(new.select(axis, 0))

    @torch.no_grad()
    def copy_head(self, network: str, source: Tensor, target: int) -> None:
        """Copy each run's head `source` [R] to position `target`; the target network's too."""
        net = self.networks[network]
        run = torch.arange(self.runs, device=self.device)
        for name in self.group(network):
            if net.per_task(name):
                head = self.params[name].detach().movedim(net.task_axis, 1)[run, source]
                for table in (self.params, self.target):
                    if name in table:  # the view is [R, T, ...]
                        table[name].detach().movedim(net.task_axis, 1)[:, target] = head

    def current_value(self, name: str) -> list[float]:
        """A value statistic of the current position, per run."""
        return [float(x) for x in self.value[name][:, self.position].tolist()]
