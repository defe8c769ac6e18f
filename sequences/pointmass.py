"""Sequences of the point mass, which train in seconds."""

from cwbench.sequences.sequence import Sequence

SEQUENCES = (
    Sequence(
        "point3",
        ("reach-0-1", "reach-3-1", "reach-5-1"),
        suite="pointmass",
        source="cwbench, for demos: --protocol demo",
    ),
)
