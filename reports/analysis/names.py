"""How methods, sequences and metrics are called and ordered in everything a reader sees."""

import re
from dataclasses import dataclass

import numpy as np

from cwbench.methods import BASES

PAIR = r"^pair-(?:(.+)-)?\d+-\d+$"  # tasks of a sequence by number; of CW10 without its name
FAMILIES = {
    "cw3": "CW3",
    "cw6": "CW6",
    "cw10": "CW10",
    "cw20": "CW20",
    "pairs": "Pairs",
    "other": "Other sequences",
    "single": "Single tasks",
}
SEQUENCES = ("cw3", "cw6", "cw10", "cw20", "other")  # families with tables and figures of methods


@dataclass(frozen=True)
class Metric:
    title: str
    short: str
    sign: int  # +1: more is better
    bounds: tuple[float, float]


METRICS = {
    "average_performance": Metric("Average Performance", "Ave. Perf.", 1, (0, 1)),
    "forgetting": Metric("Forgetting", "Forgetting", -1, (-1, 1)),
    "forward_transfer": Metric("Forward Transfer", "F. Transfer", 1, (-np.inf, 1)),
    "backward_transfer": Metric("Backward Transfer", "B. Transfer", 1, (-1, 1)),
    "anytime_performance": Metric("Anytime Performance", "Anytime", 1, (0, 1)),
    "worst_task": Metric("Worst Task", "Worst task", 1, (0, 1)),
    "minimum_after_learning": Metric("Minimum after Learning", "Minimum", 1, (0, 1)),
    "drop_depth": Metric("Depth of the Drop after a Switch", "Depth", -1, (0, 1)),
    "drop_length": Metric("Share of a Task Spent in Drops", "Length", -1, (0, 1)),
    "pooled_transfer": Metric("Pooled Forward Transfer", "Pooled", 1, (-np.inf, 1)),
    "later_transfer": Metric(
        "Forward Transfer without the First Task", "F. Transfer, later", 1, (-np.inf, 1)
    ),
    "area_gain": Metric("Gain in Area", "Area gain", 1, (-1, 1)),
    "training_performance": Metric("Own Window, Training Episodes", "Own window", 1, (0, 1)),
    "negative_transfer": Metric("Negative Transfer", "Neg. transfer", -1, (-1, 1)),
}
# Statistics of training that are drawn.
STATISTICS = {
    "critic_loss": "critic loss",
    "q": "Q value",
    "actor_loss": "actor loss",
    "mean_return": "return of training episodes",
}
ONE_SCALE = ("mean_return",)  # the others are normalised by some methods
HEADLINE = ("average_performance", "forgetting", "forward_transfer")


def method_key(method: str) -> str:
    return method.replace("-", "_")


def same_method(method: str, named: str) -> bool:
    """Whether a reader who wrote `named` means this method; case does not matter."""
    return method_key(method).lower() == method_key(named).lower()


METHODS = {method_key(name): entry.title for name, entry in BASES.items()}


def method_title(method: str) -> str:
    """The registered title, or one made from the name: `my_method` -> `My method`."""
    plain = method.replace("_", " ").replace("-", " ")
    derived = plain[:1].upper() + plain[1:]
    return METHODS.get(method_key(method), derived)


def label_title(method: str, label: str) -> str:
    """`recall coef=1` -> `RECALL coef=1`; a label that does not start with its method stays."""
    title = method_title(method)
    return title + label.removeprefix(method) if label.startswith(method) else label


def method_order(method: str) -> tuple[int, str]:
    known = list(METHODS)
    key = method_key(method)
    return (known.index(key) if key in known else len(known), key)


def pairs_of(sequence: str) -> str:
    """The sequence whose tasks make this pair; empty for Continual World's ten."""
    return str(re.sub(PAIR, r"\1", sequence))


def family(sequence: str) -> str:
    """The table a sequence belongs to."""
    if match := re.fullmatch(r"(cw3|cw6)-\d+|(cw10|cw20)", sequence):
        return str(match[1] or match[2])
    if re.fullmatch(PAIR, sequence):
        return "pairs"
    return "single" if sequence.startswith("single-") else "other"


def sequence_title(sequence: str) -> str:
    return re.sub(r"^(cw\d+)", lambda match: match[1].upper(), sequence)


def natural(text: str) -> list[tuple[int, str]]:
    """Sort key with numbers in order: cw3-2 before cw3-10."""
    parts = re.split(r"(\d+)", text)
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]
