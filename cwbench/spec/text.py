"""Text for people."""


def counted(number: int, one: str, many: str = "") -> str:
    """`1 run`, `3 runs`, `1,000 runs`; `many` where it is more than an s."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"
