"""What a method costs besides plain SAC, for `cwbench check`."""

from dataclasses import dataclass

from cwbench.experiment.conformance import opened


@dataclass(frozen=True)
class MethodCost:
    """Per run, with the networks of the toy problem."""

    parameters: int  # of actor and critics with two tasks
    state_bytes: int  # of the method's own state after one task
    state_growth: int  # bytes that a further task adds
    replay_rows: str  # transitions kept of earlier tasks
    retraining: int  # updates at a task's end
    selection: int  # episodes that choose a head at a task's start


def method_cost(name: str) -> MethodCost:
    """Of a method by name or `path/to/file.py:Class`."""
    with opened(name) as kit:
        positions = (0, 0) if kit.method.trains_jointly else (1, 2)
        first, second = (kit.rehearse(position, runs=1) for position in positions)
        sizes = [sum(x.nbytes for x in one.method.state().values()) for one in (first, second)]
        method = second.method
        kept = "all" if method.replay_budget is None else f"{method.replay_budget:,} in all"
        return MethodCost(
            parameters=sum(p[0].numel() for p in first.params.values()),
            state_bytes=sizes[0],
            state_growth=sizes[1] - sizes[0],
            replay_rows=kept if method.keeps_replay else "none",
            selection=second.selection_episodes,
            retraining=second.count_retraining(),
        )
