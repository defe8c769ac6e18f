"""What a sequence is."""

from dataclasses import dataclass, field

from cwbench.spec.tasks import Task


@dataclass(frozen=True)
class Sequence:
    """Tasks to be learned one after another. A task may occur at several positions."""

    name: str
    tasks: tuple[str, ...]
    suite: str = "metaworld"
    definitions: tuple[Task, ...] = ()  # of suites whose tasks are not known by name alone
    source: str = field(default="", compare=False)  # where it comes from
    summary: str = field(default="", compare=False)  # shown instead of a long list of tasks

    @property
    def distinct(self) -> tuple[str, ...]:
        """Its tasks, each once."""
        return tuple(dict.fromkeys(self.tasks))
