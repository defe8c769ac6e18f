"""Further sequences of Meta-World tasks."""

from cwbench.sequences.sequence import Sequence
from cwbench.spec.tasks import METAWORLD_TASKS

RESET_DISTILL = "Reset & Distill, Ahn et al. 2025"
META_WORLD = "Meta-World, Yu et al. 2020"


def _tasks(text: str) -> tuple[str, ...]:
    return tuple(text.split())


SEQUENCES = (
    Sequence(
        "rd-hard",
        _tasks(
            "faucet-open push sweep button-press-topdown window-open sweep-into button-press-wall "
            "push-wall"
        ),
        source=RESET_DISTILL,
    ),
    Sequence(
        "rd-easy",
        _tasks(
            "faucet-open door-close button-press-topdown-wall handle-pull window-close "
            "plate-slide-back-side handle-press door-lock"
        ),
        source=RESET_DISTILL,
    ),
    Sequence(
        "mt10",
        _tasks(
            "button-press-topdown door-open drawer-close drawer-open peg-insert-side pick-place "
            "push reach window-close window-open"
        ),
        source=META_WORLD,
    ),
    Sequence(
        "mt50",
        tuple(sorted(METAWORLD_TASKS)),
        source=META_WORLD,
        summary="all fifty tasks in alphabetical order",
    ),
)
