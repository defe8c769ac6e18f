"""Further sequences of Meta-World tasks."""

from cwbench.sequences.sequence import Sequence
from cwbench.spec.tasks import METAWORLD_TASKS

RESET_DISTILL = "Reset & Distill, Ahn et al. 2025"
# Eight tasks, shuffled by a run's seed: the orders of seeds 0, 1 and 2.
RANDOM = (
    "shelf-place handle-press-side faucet-open window-close handle-pull-side door-unlock "
    "plate-slide-side plate-slide-back-side",
    "window-close handle-press-side faucet-open shelf-place door-unlock plate-slide-back-side "
    "handle-pull-side plate-slide-side",
    "plate-slide-back-side faucet-open shelf-place handle-press-side handle-pull-side window-close "
    "plate-slide-side door-unlock",
)
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
    *(
        Sequence(f"rd-random-{seed}", _tasks(order), source=RESET_DISTILL)
        for seed, order in enumerate(RANDOM)
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
