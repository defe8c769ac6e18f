"""What is counted with every chunk."""

from typing import Any, cast

from cwbench.fleet.state import GroupState, RunState
from cwbench.rollout.episodes import Episode


def test_only_whole_episodes_of_the_own_task_count_as_training_episodes() -> None:
    state = GroupState([RunState(), RunState()], step=10)
    start = cast(Any, None)
    episodes = [
        Episode(0, 0, 0.5, 4.0, start),  # half of a success, where scores are shares
        Episode(0, 0, 0.5, 3.0, start),
        Episode(0, 0, 0.0, 2.0, start, complete=False, unstable=True),
        Episode(1, 1, 1.0, 9.0, start),  # of the other lane
    ]
    state.advance(30, episodes, lanes=2)
    assert state.step == 30
    first, second = (run.counts for run in state.runs)
    assert (first.episodes, first.successes, first.returns) == (2, 1.0, 7.0)
    assert (second.episodes, second.successes, second.returns) == (0, 0, 0)
    assert (first.unstable_episodes, second.unstable_episodes) == (1, 0)
    assert [(run.counts.train_steps, run.counts.extra_steps) for run in state.runs] == [
        (20, 20)
    ] * 2
