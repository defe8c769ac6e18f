"""What a continual-learning method may change. The base class is plain SAC, i.e. fine-tuning.

R runs train side by side. Axis 0 of every tensor is the run; a loss is one number per run, [R].
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any, ClassVar, Generic, TypeVar

import torch
from torch import Tensor

from cwbench.learner.architecture import Architecture
from cwbench.learner.hooks import no_global_randomness
from cwbench.learner.replay import Batch
from cwbench.learner.trainer import Trainer
from cwbench.spec.config import MethodConfig
from cwbench.spec.errors import UserError
from cwbench.spec.options import shared_options
from cwbench.spec.schedule import Exploration
from cwbench.spec.segment import Segment, Setup, segments_of_run
from cwbench.spec.source import note_source

C = TypeVar("C", bound=MethodConfig)
OF_POSITIONS = ("lanes", "exploration", "policy_weights", "evaluated_weights")  # hooks


class Method(Generic[C]):
    """Base class of all methods. With its default hooks it is plain SAC.

    The update hooks (sample_batch to after_update) are tensor code without `.item()` or branches on
    tensor values, because an update may be compiled or captured. Python values that change at task
    boundaries only, such as `self.trainer.position`, may be used freely.
    """

    config_class: ClassVar[type[MethodConfig]] = MethodConfig  # its options
    preset: ClassVar[Mapping[str, Any]] = {}  # shared options it wants different
    # Attributes, tensors [R, ...] or dicts of them, that a snapshot and the next task need. After
    # an interruption they are restored, and on_task_start is not called again.
    state_names: ClassVar[tuple[str, ...]] = ()
    keeps_replay: bool = False  # whether earlier tasks' transitions stay available
    replay_budget: int | None = None  # of all earlier tasks together; None: all of them
    annotation_width: int = 0  # numbers that a method adds to each of them
    # Whether losses use the critic of earlier tasks, on their data or as something to stay close
    # to. It is then part of what the method remembers, and `--reset critic` does not apply.
    keeps_critic: ClassVar[bool] = False
    needs_length: ClassVar[bool] = False  # whether training depends on how many tasks there are
    interval: int = 0  # updates between two calls of `at_interval`; 0: never
    captures_interval: bool = False  # whether `at_interval` is tensor code, as update hooks are
    architecture: ClassVar[type[Architecture] | None] = None  # of the actor; None: the usual one
    trains_jointly: ClassVar[bool] = False  # whether all tasks are learned at once
    # A method whose single-task segments learn each task first. This method then makes no updates
    # but its own in `on_task_end`; the expert acts for `expert_steps` steps, to show it states.
    experts: ClassVar[str | None] = None

    def __init_subclass__(cls, **further: Any) -> None:
        super().__init_subclass__(**further)
        note_source(cls)

    def __init__(self, config: C, trainer: Trainer) -> None:
        self.trainer = trainer
        self.assign([config] * trainer.runs)

    @classmethod
    def segments_of_run(cls, setup: Setup, seed: int, tasks: tuple[str, ...]) -> list[Segment]:
        """The segments of one run of a sequence, first task first."""
        return segments_of_run(
            setup,
            seed,
            tasks,
            needs_length=cls.needs_length,
            joint=cls.trains_jointly,
            experts=cls.experts,
        )

    @classmethod
    def architecture_of(cls, config: C) -> type[Architecture] | None:
        """The actor's architecture with these options: by default the class's."""
        return cls.architecture

    @classmethod
    def keeps_critic_with(cls, config: C) -> bool:
        """Whether it keeps the critic with these options: by default what the class says."""
        return cls.keeps_critic

    def assign(self, configs: Sequence[C]) -> None:
        """Give each run its own options; they differ at most in those declared `per_run`."""
        self.configs = tuple(configs)  # one per run
        self.config = shared_options(configs[0])  # what all runs have in common
        self._tensors: dict[tuple[float, ...], Tensor] = {}

    def per_run(self, value: Callable[[C], float]) -> Tensor:
        """Each run's value of an option, [R]: `self.per_run(lambda config: config.coef)`."""
        values = tuple(float(value(config)) for config in self.configs)
        if values not in self._tensors:  # made once: a captured update copies nothing to a device
            self._tensors[values] = torch.tensor(values).to(self.trainer.device)
        return self._tensors[values]

    def rows_per_task(self, tasks: int) -> int | None:
        """Each earlier task's share of the replay budget, if there is one."""
        budget = self.replay_budget
        return None if budget is None or not tasks else max(1, budget // tasks)

    def state(self) -> dict[str, Tensor]:
        """The attributes named in `state_names`, under flat names."""
        flat: dict[str, Tensor] = {}
        for name in self.state_names:
            value = getattr(self, name, None)
            parts = (
                {f":{k}": x for k, x in value.items()} if isinstance(value, dict) else {"": value}
            )
            flat |= {f"{name}{part}": self._state_tensor(name, x) for part, x in parts.items()}
        return flat

    def _state_tensor(self, name: str, value: Any) -> Tensor:
        if isinstance(value, Tensor) and value.shape[:1] == (self.trainer.runs,):
            return value
        what = f"a tensor {list(value.shape)}" if isinstance(value, Tensor) else repr(value)
        raise UserError(
            f"{type(self).__name__}.{name}, named in state_names, is {what:.80}",
            f"it must be a tensor [R, ...] with R = {self.trainer.runs} runs, or a dict of them",
        )

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        for name in self.state_names:
            parts = {k.split(":", 1)[1]: x for k, x in state.items() if k.startswith(f"{name}:")}
            own = parts or state.get(name)
            if own is not None:
                device = self.trainer.device
                moved = (
                    {k: x.to(device) for k, x in own.items()}
                    if isinstance(own, dict)
                    else own.to(device)
                )
                setattr(self, name, moved)

    # Task boundaries: ordinary Python, may take minutes.

    def begin_task(self, position: int) -> None:
        """`on_task_start`, and then what `--reset` asks for."""
        with no_global_randomness(self, "on_task_start"):
            self.on_task_start(position)
        if position:
            self.trainer.reset(self.config.reset.split(","))

    def end_task(self, position: int) -> None:
        """`on_task_end`, checked."""
        with no_global_randomness(self, "on_task_end"):
            self.on_task_end(position)

    def on_task_start(self, position: int) -> None:
        """Before the first step of the task at this position."""

    def on_task_end(self, position: int) -> None:
        """After the last step, before the evaluation at the boundary."""

    @property
    def expert_steps(self) -> int | None:
        """A number where the method has `experts`."""
        return None

    def use_expert(self, expert: Mapping[str, Tensor]) -> None:
        """Take the actor, with one head, that has learned the current task."""

    def exploration(self, position: int) -> Exploration:
        """Uniform actions for the schedule's start steps."""
        return self.trainer.uniform_exploration()

    def lanes(self, position: int) -> tuple[tuple[int, ...], ...]:
        """Whose environments are stepped: for each lane, the positions of successive episodes."""
        return ((position,),)

    # One update: tensor code only.

    def sample_batch(self, size: int) -> Batch:
        return self.trainer.replay.sample(size)

    def actor_penalty(self, batch: Batch) -> Tensor:
        """[R], added to the actor loss."""
        return torch.zeros(self.trainer.runs, device=self.trainer.device)

    def critic_penalty(self, batch: Batch) -> Tensor:
        """[R], added to the critic loss."""
        return torch.zeros(self.trainer.runs, device=self.trainer.device)

    def adjust_gradients(self, grads: dict[str, Tensor]) -> None:
        """Change gradients in place, before clipping."""

    def after_update(self, batch: Batch, targets: Tensor) -> None:
        """After the optimiser's step; `targets` [R, B] are in the unit of rewards."""

    # Between updates: ordinary Python, but tensors change in place, as captured updates read them.

    def at_interval(self) -> None:
        """After every `interval` updates of a task; captured itself with `captures_interval`."""

    # Acting and evaluation.

    def policy_weights(self, position: int) -> Mapping[str, Tensor]:
        """The actor that acts for this position."""
        return self.trainer.actor_params

    def evaluated_weights(self, position: int) -> Mapping[str, Tensor]:
        """The actor that is evaluated for this position: the one that acts, by default."""
        return self.policy_weights(position)


def ask(method: Method[Any], hook: str, position: int) -> Any:
    """What one of the hooks `OF_POSITIONS` returns. UserError if it draws global random numbers."""
    # By default what is evaluated is what acts.
    used = ("policy_weights", hook) if hook == "evaluated_weights" else (hook,)
    usual = all(getattr(type(method), name) is getattr(Method, name) for name in used)
    with nullcontext() if usual else no_global_randomness(method, hook):  # a third of a millisecond
        return getattr(method, hook)(position)
