"""Names of the ten Continual World tasks; a task's id in the paper is its place here."""

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
