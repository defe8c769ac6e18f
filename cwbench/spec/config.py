"""Option groups that every method shares, and the protocols that set them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, make_dataclass, replace
from functools import cache
from typing import Any, ClassVar, Literal, Self, TypeVar

from cwbench.spec.env_source import keep_text
from cwbench.spec.errors import UserError
from cwbench.spec.options import field_names, field_type, flag_name, from_record, option, to_record
from cwbench.spec.tasks import LONGEST_EPISODE, METAWORLD_TASKS, Task

N = TypeVar("N", int, float)

# How SAC's gradients are computed: by learner/gradients.py, or by autograd from learner/losses.py.
Gradients = Literal["manual", "autograd"]

RESETS = ("actor", "critic", "heads")
ALWAYS_RESET = ("alpha", "replay", "optimizer")


Activation = Literal["leaky-relu", "relu", "tanh"]
InitialWeights = Literal["glorot", "torch"]
LogStd = Literal["clip", "tanh"]


@dataclass(frozen=True)
class MethodConfig:
    """Options of a method. The fields here are options of every method."""

    reset: str = option(
        "none",
        "What starts afresh at each task: the actor's shared layers, the whole critic, heads even "
        "where the method would copy one. Alpha, replay and optimizer always do.",
        added=True,
        parts=RESETS,
        implied=ALWAYS_RESET,
        metavar="PART,...",
    )

    def record(self) -> dict[str, Any]:
        """What decides the numbers, as it is stored and hashed."""
        return to_record(self)

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Self:
        return from_record(cls, record)


@dataclass(frozen=True)
class SACConfig:
    batch_size: int = option(128, "Transitions per update.", minimum=1, maximum=10**6)
    lr: float = option(1e-3, "Learning rate of Adam.", minimum=0, maximum=10)
    gamma: float = option(0.99, "Discount.", minimum=0, maximum=1)
    polyak: float = option(
        0.995, "Share of the old target kept at each update.", minimum=0, maximum=1
    )
    # eps as in the reference, not torch's 1e-8: PackNet's clipped gradients are near 5e-8.
    # Not zero, even in 32 bits: a weight without gradient would move by 0/0.
    adam_eps: float = option(1e-7, "Epsilon of Adam.", minimum=1e-30, maximum=1)
    target_std: float = option(
        0.089, "Policy std whose entropy is the target.", above=0, maximum=1000
    )
    clip_norm: float | None = option(
        None, "Largest gradient norm, for actor, critics and alpha each; 0: no limit.", minimum=0
    )
    buffer_size: int = option(1_000_000, "Transitions kept of the current task.", minimum=1)
    actor_every: int = option(
        1,
        "Move actor and temperature only in every n-th update, then n times on its batch.",
        minimum=1,
        maximum=1000,
        added=True,
    )
    initial_log_alpha: float = option(
        1.0, "Logarithm of the temperature at a task's start.", minimum=-50, maximum=50, added=True
    )


@dataclass(frozen=True)
class NetworkConfig:
    width: int = option(256, "Units per hidden layer.", minimum=1, maximum=65_536)
    layers: int = option(4, "Hidden layers.", minimum=1, maximum=100)
    actor_head_layers: int = option(
        0, "Hidden layers that each task has for itself in the actor.", minimum=0
    )
    critic_head_layers: int = option(
        0, "Hidden layers that each task has for itself in the critics.", minimum=0
    )
    hidden: str | None = option(
        None,
        "Units of each hidden layer, such as 400,300; instead of --width and --layers.",
        added=True,
        metavar="N,N,...",
    )
    activation: Activation = option(
        "leaky-relu", "Activation of hidden layers; after LayerNorm it is tanh.", added=True
    )
    layer_norm: Literal["on", "off"] = option(
        "on", "LayerNorm and tanh in the first hidden layer; off: it is like the others.",
        added=True,
    )  # fmt: skip
    init: InitialWeights = option(
        "glorot", "Initial weights: Glorot's with zero biases, or torch's default.", added=True
    )
    log_std: LogStd = option(
        "clip", "How the policy's log-std is kept in its range: clipped, or tanh scaled to it.",
        added=True,
    )  # fmt: skip
    log_std_range: str = option(
        "-20,2", "Smallest and largest log-std of the policy.", added=True, metavar="MIN,MAX"
    )

    def __post_init__(self) -> None:
        """Equal networks get equal records: `hidden` stays only where the layers differ."""
        low, high = bounds = self.log_std_bounds
        if not -1e3 <= low < high <= 1e3:
            raise UserError(
                f"--log-std-range {self.log_std_range}: not a lower and an upper bound",
                "write -20,2",
            )
        # As Python's (-20, 2) is written: -20.0, 2.0 and -20, 2 are the default.
        text = ",".join(str(int(end) if end.is_integer() else end) for end in bounds)
        object.__setattr__(self, "log_std_range", text)
        if self.hidden is None:
            return
        units = _numbers("hidden", self.hidden, int, "256,256")
        if not all(1 <= count <= 65_536 for count in units) or len(units) > 100:
            raise UserError(
                f"--hidden {self.hidden}: layers have 1 to 65,536 units", "write 256,256"
            )
        differing = ",".join(map(str, units)) if len(set(units)) > 1 else None
        for name, value in (("hidden", differing), ("width", max(units)), ("layers", len(units))):
            object.__setattr__(self, name, value)

    @property
    def units(self) -> tuple[int, ...]:
        """Of each hidden layer."""
        if self.hidden is None:
            return (self.width,) * self.layers
        return _numbers("hidden", self.hidden, int, "256,256")

    @property
    def log_std_bounds(self) -> tuple[float, float]:
        bounds = _numbers("log_std_range", self.log_std_range, float, "-20,2")
        if len(bounds) != 2:
            raise UserError(
                f"--log-std-range {self.log_std_range}: two numbers are needed", "write -20,2"
            )
        return bounds[0], bounds[1]


def _numbers(name: str, text: str, kind: type[N], example: str) -> tuple[N, ...]:
    """Numbers separated by commas."""
    try:
        return tuple(kind(part) for part in text.split(","))
    except (ValueError, AttributeError):  # or no text
        raise UserError(
            f"--{flag_name(name)} {text}: not a list of numbers", f"write {example}"
        ) from None


@dataclass(frozen=True)
class EnvConfig:
    """Options of an environment suite: each suite of `cwbench.envs` has its own subclass."""

    suite: ClassVar[str]
    task_names: ClassVar[tuple[str, ...]] = ()  # of tasks that need no definition

    horizon: int = option(200, "Steps per episode.", minimum=1, maximum=LONGEST_EPISODE)

    def record(self) -> dict[str, Any]:
        """What decides numbers. Meta-World's records name no suite: ids are older than suites."""
        named = {} if self.suite == MetaWorldConfig.suite else {"suite": self.suite}
        return named | to_record(self)

    @staticmethod
    def from_record(record: Mapping[str, Any]) -> "EnvConfig":
        values = dict(record)
        return ENV_CONFIGS[values.pop("suite", MetaWorldConfig.suite)].read(values)

    @classmethod
    def read(cls, record: Mapping[str, Any]) -> "EnvConfig":
        """What `record` wrote, without the suite's name."""
        return from_record(cls, record)

    def check_unchanged(self) -> None:
        """UserError if code that defines its tasks has been edited since they were made."""

    def check_imported(self) -> None:
        """As `check_unchanged`, where the code has just been imported; later edits are ignored."""

    def only(self, task: str) -> "EnvConfig":
        """What a run of this task alone would have, with observations and actions of this size."""
        return self


@dataclass(frozen=True)
class MetaWorldConfig(EnvConfig):
    suite = "metaworld"
    task_names = METAWORLD_TASKS

    obs: Literal["cw12", "full39"] = option("cw12", "Observation layout.")
    reward: Literal["cw_v1", "v2", "stock_v1"] = option("cw_v1", "Reward version.")
    push_back_shaping: bool = option(False, "Pay push-back's approach from above, as V1 did.")
    hammer_nail: bool = option(True, "Show hammer's nail in cw12; Continual World had zeros there.")
    success: Literal["any", "last"] = option(
        "any", "Count an episode as solved at any step or only at its last; used in training and, "
        "by default, in reports.",
        added=True,
    )  # fmt: skip
    unstable: Literal["stock", "hold"] = option(
        "stock", "After a simulation becomes unstable: go on as Meta-World does, or repeat the "
        "observation before it with reward 0 until the episode ends.",
        added=True,
    )  # fmt: skip


@dataclass(frozen=True)
class PointMassConfig(EnvConfig):
    suite = "pointmass"
    task_names = tuple(f"reach-{goal}-1" for goal in range(8))  # rewards as they are

    horizon: int = option(25, "Steps per episode.", minimum=1, maximum=LONGEST_EPISODE)


@dataclass(frozen=True)
class GymnasiumConfig(EnvConfig):
    """Nothing here is an option: task definitions and their environments decide all of it."""

    suite = "gymnasium"

    horizon: int = 0  # of the longest task
    obs_size: int = 0  # of the largest task; others are padded with zeros
    action_size: int = 0  # likewise; others ignore what is beyond their own
    tasks: tuple[Task, ...] = ()

    def record(self) -> dict[str, Any]:
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        tasks = [task.record() for task in self.tasks]
        return {"suite": self.suite, **values, "tasks": tasks}

    @classmethod
    def read(cls, record: Mapping[str, Any]) -> "GymnasiumConfig":
        tasks = tuple(map(Task.from_record, record["tasks"]))
        return from_record(cls, {**record, "tasks": tasks})

    def check_unchanged(self) -> None:
        for task in self.tasks:
            task.check_unchanged()

    def check_imported(self) -> None:
        for task in self.tasks:
            keep_text(task.env)
            task.check_unchanged()

    def only(self, task: str) -> "GymnasiumConfig":
        [found] = [one for one in self.tasks if one.name == task]
        return replace(self, tasks=(found,), horizon=found.horizon or 0)


ENV_CONFIGS: dict[str, type[EnvConfig]] = {
    config.suite: config for config in (MetaWorldConfig, PointMassConfig, GymnasiumConfig)
}


@dataclass(frozen=True)
class ScheduleConfig:
    steps_per_task: int = option(1_000_000, "Environment steps per task.", minimum=1, maximum=10**8)
    eval_every: int = option(20_000, "Steps between evaluations.", minimum=1)
    eval_episodes: int = option(
        10, "Stochastic episodes per evaluation and task.", minimum=1, maximum=10_000
    )
    start_steps: int = option(10_000, "Steps with random actions at a task's start.", minimum=0)
    update_after: int = option(1_000, "Steps before the first update.", minimum=0)
    update_every: int = option(50, "Steps, and updates, per round.", minimum=1, maximum=10**6)
    lag: int = option(
        0,
        "Rounds by which the weights that collect are older than the newest: with 1, workers "
        "collect during updates.",
        minimum=0,
        maximum=1,
        added=True,
    )


GROUPS: dict[str, type] = {
    "sac": SACConfig,
    "network": NetworkConfig,
    "env": MetaWorldConfig,
    "schedule": ScheduleConfig,
}


def option_groups() -> dict[str, type]:
    """GROUPS, and as one more the options that only other suites than Meta-World have."""
    return GROUPS | {"suites": _suite_options(tuple(ENV_CONFIGS.values()))}


@cache
def _suite_options(configs: Sequence[type[EnvConfig]]) -> type:
    """Of options that several suites have, the first suite's is meant."""
    known, own = field_names(MetaWorldConfig), []
    for config in configs:
        for one in fields(config):
            if "help" in one.metadata and one.name not in known:
                made = field(default=one.default, metadata=one.metadata)
                own.append((one.name, field_type(config, one), made))
                known.add(one.name)
    return make_dataclass("SuiteOptions", own, frozen=True)


# What a protocol sets; everything else keeps its default or the method's preset.
PROTOCOLS: dict[str, dict[str, Any]] = {
    "paper": {},
    "compact": {"steps_per_task": 250_000, "eval_every": 10_000},
    # CompoNet's and CKA-RL's: docs/protocols.md says what differs from theirs.
    "componet": {
        "obs": "full39",
        "reward": "v2",
        "horizon": 500,
        "success": "last",
        "reset": "critic",
        "width": 256,
        "layers": 2,
        "activation": "relu",
        "layer_norm": "off",
        "init": "torch",
        "log_std": "tanh",
        "initial_log_alpha": 0.0,
        "adam_eps": 1e-8,
        "actor_every": 2,
        "update_after": 5_000,
        "eval_every": 50_000,
    },
    # On the point mass, where it learns: `--seq point3 --protocol demo`.
    "demo": {
        "steps_per_task": 1_500,
        "eval_every": 250,
        "eval_episodes": 10,
        "start_steps": 250,
        "update_after": 250,
        "update_every": 25,
        "batch_size": 64,
        "width": 64,
        "gamma": 0.9,
        "lr": 3e-3,
    },
    "smoke": {
        "steps_per_task": 600,
        "eval_every": 300,
        "eval_episodes": 2,
        "start_steps": 100,
        "update_after": 100,
        "batch_size": 32,
        "width": 32,
    },
}
