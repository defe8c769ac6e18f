"""How a row stores a transition: obs, action, reward, next obs and, for some, `terminated`."""

from typing import Any, NamedTuple


class Dims(NamedTuple):
    """Sizes of what environments show and take."""

    obs: int
    action: int
    terminates: bool = False  # episodes can end in terminal states: rows have one more column

    @property
    def width(self) -> int:
        """Numbers in a row."""
        return 2 * self.obs + self.action + 1 + self.terminates

    def pack(self, row: Any, obs: Any, action: Any, reward: float, next_obs: Any) -> None:
        """Write a transition into a row [F]; `terminated` is left to the caller."""
        start = self.obs + self.action
        row[: self.obs] = obs
        row[self.obs : start] = action
        row[start] = reward
        row[start + 1 : start + 1 + self.obs] = next_obs

    def unpack(self, rows: Any) -> dict[str, Any]:
        """Views of rows [..., F], of numpy or torch, by name; `terminated` may be None."""
        start = self.obs + self.action
        return {
            "obs": rows[..., : self.obs],
            "action": rows[..., self.obs : start],
            "reward": rows[..., start],
            "next_obs": rows[..., start + 1 : start + 1 + self.obs],
            "terminated": rows[..., -1] if self.terminates else None,
        }
