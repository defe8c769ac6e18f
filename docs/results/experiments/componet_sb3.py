"""SAC of Stable-Baselines3 on a Meta-World task as both come, under the rules of CompoNet.

    python componet_sb3.py TASK SEED >> componet_sb3.csv

A row for every 10,000 steps: means over the last 20 training episodes of success at the last
step, success at any step and return. Needs metaworld 3.1.1, stable-baselines3 and packaging.
Updates begin after 10,000 steps; the actor is updated once a step and has the log-std and the
initial weights of Stable-Baselines3.
"""

import sys
from typing import Any

import numpy as np
import torch

STEPS, EVERY, EPISODES = 250_000, 10_000, 20


def main(task: str, seed: int) -> None:
    import mujoco
    from metaworld.env_dict import ALL_V3_ENVIRONMENTS_GOAL_OBSERVABLE
    from stable_baselines3 import SAC
    from stable_baselines3.common.callbacks import BaseCallback

    class Log(BaseCallback):  # type: ignore[misc]  # its package is not among this one's
        def __init__(self) -> None:
            super().__init__()
            self.episodes: list[tuple[bool, bool, float]] = []
            self.solved, self.paid = False, 0.0

        def _on_step(self) -> bool:
            [info], [reward], [done] = (self.locals[key] for key in ("infos", "rewards", "dones"))
            self.solved |= info["success"] > 0
            self.paid += float(reward)
            if done:
                self.episodes.append((info["success"] > 0, self.solved, self.paid))
                self.solved, self.paid = False, 0.0
            if self.num_timesteps % EVERY == 0:
                means = np.mean(self.episodes[-EPISODES:], axis=0)
                print(task, seed, self.num_timesteps, *means.round(2), sep=",", flush=True)
            return True

    mujoco.set_mju_user_warning(lambda text: print(text, file=sys.stderr))  # not among the rows
    torch.set_num_threads(1)
    np.random.seed(seed)  # Meta-World's starts are drawn from it
    env: Any = ALL_V3_ENVIRONMENTS_GOAL_OBSERVABLE[f"{task}-v3-goal-observable"](seed=seed)
    env._freeze_rand_vec = env.seeded_rand_vec = False  # a new start in every episode
    model = SAC(
        "MlpPolicy",
        env,
        learning_rate=1e-3,
        buffer_size=STEPS,
        learning_starts=10_000,
        batch_size=128,
        ent_coef="auto_1.0",
        target_entropy=-4.0,
        policy_kwargs={"net_arch": [256, 256]},
        seed=seed,
        device="cpu",
    )
    model.learn(STEPS, callback=Log())


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
