"""What methods cost."""

from cwbench.experiment.method_cost import method_cost


def test_the_cost_of_known_methods() -> None:
    plain, ewc, replay = (method_cost(name) for name in ("finetuning", "ewc", "recall"))
    assert (plain.state_bytes, plain.retraining, plain.replay_rows) == (0, 0, "none")
    assert ewc.state_bytes > 4 * 8 * 8 and ewc.state_growth == 0  # importances and an anchor
    assert ewc.parameters == plain.parameters and replay.replay_rows == "all"
