"""Names of tasks that sequences refer to."""

# Continual World's ten; a task's id in the paper is its index here.
CW_TASKS = (
    "hammer",
    "push-wall",
    "faucet-close",
    "push-back",
    "stick-pull",
    "handle-press-side",
    "push",
    "shelf-place",
    "window-close",
    "peg-unplug-side",
)

# All fifty of Meta-World, Continual World's ten first.
METAWORLD_TASKS = (
    *CW_TASKS,
    *"""
    assembly basketball bin-picking box-close button-press-topdown button-press-topdown-wall
    button-press button-press-wall coffee-button coffee-pull coffee-push dial-turn disassemble
    door-close door-lock door-open door-unlock hand-insert drawer-close drawer-open faucet-open
    handle-press handle-pull-side handle-pull lever-pull peg-insert-side pick-place-wall
    pick-out-of-hole reach pick-place plate-slide plate-slide-side plate-slide-back
    plate-slide-back-side soccer stick-push reach-wall sweep-into sweep window-open
    """.split(),
)
