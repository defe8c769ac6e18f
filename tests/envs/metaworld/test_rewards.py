"""Repaired rewards, and that nothing else differs from Meta-World."""

import itertools
import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from metaworld_pairs import episodes, noisy_expert, stock_env

from cwbench.envs.metaworld import make, rewards
from cwbench.envs.metaworld.env import CW12
from cwbench.spec.config import MetaWorldConfig
from cwbench.spec.tasks import CW_TASKS


def test_v1_rewards_of_the_other_forty_are_meta_worlds():
    rng = np.random.default_rng(0)
    stock, env = stock_env("reach", "v1"), make("reach", MetaWorldConfig())
    policy = noisy_expert("reach", rng)
    for obs, reward, success, ours in itertools.islice(episodes(stock, env, [policy], rng), 50):
        assert (ours[0] == obs.astype(np.float32)[CW12]).all()
        assert ours[1] == reward and ours[2] == success


def distance(a, b, axes=3):
    return math.sqrt(sum((x - y) ** 2 for x, y in zip(a[:axes], b[:axes], strict=True)))


def bump(d):
    return 1000 * (math.exp(-(d**2) / 0.01) + math.exp(-(d**2) / 0.001))


class Restated:
    """Quantities that the formulas share; `start` is taken right after the reset."""

    bodies: tuple[str, ...]
    __call__: Any

    def __init__(self, stock):
        self.stock, self.seen = stock, set()
        data = stock.data
        self.goal = np.array(stock._target_pos)
        self.start = {name: data.body(name).xpos.copy() for name in self.bodies}
        self.picked = False

    def body(self, name):
        return self.stock.data.body(name).xpos

    def fingers(self):
        site = self.stock.data.site
        return (site("leftEndEffector").xpos + site("rightEndEffector").xpos) / 2

    def held(self, z, z0, target, reach, gap, action):
        """R + K of the lifting tasks, and whether the third term counts."""
        dropped = z < z0 + 0.005 and gap > 0.02 and reach > 0.02
        reward = -reach + (max(float(action[3]), 0) / 50 if reach < 0.05 else 0)
        if self.picked and not dropped:
            reward += 100 * target
        elif reach < 0.1 and z > z0 + 0.005:
            self.seen.add("lifting")
            reward += 100 * min(target, z)
        return reward, self.picked and reach < 0.1 and not dropped


class Hammer(Restated):
    bodies = ("hammer", "nail_link")

    def __call__(self, action):
        hammer, nail, nail0 = self.body("hammer"), self.body("nail_link"), self.start["nail_link"]
        # The head's centre lies 0.16 m along the hammer's x axis.
        head = hammer + 0.16 * self.stock.data.body("hammer").xmat.reshape(3, 3)[:, 0]
        x0, y0, z0 = self.start["hammer"]
        target = z0 + 0.09
        h, s, reach = (
            distance(nail, head),
            abs(nail[1] - self.goal[1]),
            distance(hammer, self.fingers()),
        )
        self.picked = self.picked or hammer[2] >= target - 0.01
        if self.picked and hammer[2] < target - 0.01:
            self.seen.add("latched")
        reward, counts = self.held(hammer[2], z0, target, reach, h, action)
        if counts:
            farthest = distance((x0, y0, target), nail0) + target + abs(nail0[1] - self.goal[1])
            self.seen.add("hit" if s < 0.01 else "carry")
            reward += max(0, 1000 * (farthest - h - s) + bump(h + s))
        return reward


class StickPull(Restated):
    bodies = ("stick", "object")

    def __call__(self, action):
        stick, container = self.body("stick"), self.stock.data.site("insertion").xpos
        z0 = self.start["stick"][2]
        target = z0 + 0.04
        reach = distance(stick, self.fingers())
        p, q = distance(stick, container), distance(container, self.goal, 2)
        self.picked = stick[2] >= target - 0.01
        reward, counts = self.held(stick[2], z0, target, reach, q, action)
        if counts:
            x, y, _ = self.start["object"]
            term = 1000 * (distance((x, y, target), self.start["stick"]) + target - p) + bump(p)
            if p < 0.05:
                self.seen.add("pull")
                term += 1000 * (distance((x, y), self.goal, 2) - q) + 2 * bump(q)
            reward += max(0, term)
        return reward


class PushBack(Restated):
    bodies = ("obj",)

    def __call__(self, action):
        puck, fingers = self.stock.data.geom("objGeom").xpos, self.fingers()
        reach, xy = distance(puck, fingers), distance(puck, fingers, 2)
        d = distance(puck, self.goal, 2)
        if reach < 0.05:
            self.seen.add("near")
            farthest = distance(self.start["obj"], self.goal, 2)
            reward = -reach + max(float(action[3]), 0) / 50
            return reward + max(0, 1000 * (farthest - d) + bump(d))
        self.seen.add("above" if xy < 0.05 else "far")
        return -reach if xy < 0.05 else -xy - 2 * abs(fingers[2] - 0.2)


REPAIRED = {
    "hammer": (Hammer, {"carry", "hit", "latched"}),
    "stick-pull": (StickPull, {"lifting", "pull"}),
    "push-back": (PushBack, {"near", "above", "far"}),
}


@pytest.mark.parametrize("task", REPAIRED)
def test_repaired_reward_matches_its_formula(task):
    formula, cases = REPAIRED[task]
    rng = np.random.default_rng(3)
    env = make(task, MetaWorldConfig(push_back_shaping=True))
    stock, seen, differs = stock_env(task, "v1"), set(), 0
    act = noisy_expert(task, rng)
    for _ in range(3):
        env.reset(rng)
        stock._last_rand_vec = env.save()["rand_vec"]
        obs, _ = stock.reset()
        restated = formula(stock)
        for step in range(200):
            # The hand lets go towards the end: objects fall, which a latch must survive.
            action = act(obs) if step < 170 else np.array([0, 0, 0.5, -1], np.float32)
            obs, stock_reward, _, _, info = stock.step(action)
            _, reward, success, _, _ = env.step(action)
            assert reward == pytest.approx(restated(action), rel=1e-9, abs=1e-7)
            assert success == bool(info["success"])  # a repair changes no threshold
            differs += reward != stock_reward
        seen |= restated.seen
    assert seen >= cases and differs > 100


def test_only_the_repairs_differ_from_meta_world():
    same = {task for task in CW_TASKS if rewards.CW_V1[task] is rewards.STOCK_V1[task]}
    assert set(CW_TASKS) - same == {"hammer", "stick-pull"}
    plain, shaped = MetaWorldConfig(), MetaWorldConfig(push_back_shaping=True)
    different = {t for t in CW_TASKS if rewards.choose(t, plain) is not rewards.choose(t, shaped)}
    assert different == {"push-back"}


STILL = np.zeros(4, np.float32)
GOAL = np.array([0.1, 0.7, 0.2])
X, Z = np.eye(3)[[0, 2]]


def paid(task, thing, fingers, **episode):
    """The stock reward, and success, of an object and of fingers at these places."""
    obs = np.zeros(39)
    obs[4:7] = thing
    sim = SimpleNamespace(_target_pos=GOAL, tcp_center=np.asarray(fingers), **episode)
    return rewards.STOCK_V1[task](sim, obs, STILL)


def test_a_window_opened_further_costs():
    """The only reward whose second part may be negative: 0.3 m to go of 0.2 m at the start."""
    reward, _ = paid("window-close", GOAL + 0.3 * X, GOAL + 0.3 * X, maxPullDist=0.2)
    assert reward == pytest.approx(1000 * (0.2 - 0.3) + bump(0.3))
    reward, _ = paid("faucet-close", GOAL + 0.3 * X, GOAL + 0.3 * X, maxPullDist=0.2)
    assert reward == 0


def on_shelf(thing, fingers):
    return paid(
        "shelf-place",
        thing,
        fingers,
        heightTarget=0.1,
        objHeight=0.02,
        maxPlacingDist=0.5,
        init_tcp=np.array([0, 0.6, 0.2]),
    )


def test_a_block_is_on_its_shelf_within_seven_centimetres():
    assert on_shelf(GOAL + 0.0699 * X, GOAL)[1] and not on_shelf(GOAL + 0.0701 * X, GOAL)[1]


def test_a_lifted_block_is_paid_for_in_the_fingers_only():
    """0.1 m to go of 0.5 m: 400, the lift's 100 * 0.1 m, and less the distance of the hand."""
    block = GOAL - 0.1 * X
    reward, _ = on_shelf(block, block)
    assert reward == pytest.approx(1000 * (0.5 - 0.1) + bump(0.1) + 10)
    away = block + 0.11 * Z  # above it, which costs the distance
    assert on_shelf(block, away)[0] == pytest.approx(10 - 0.11)


@pytest.mark.parametrize(
    ("height", "distance", "reach", "dropped"),
    [
        (0.024, 0.021, 0.021, True),
        (0.026, 0.021, 0.021, False),  # in the air
        (0.024, 0.019, 0.021, False),  # at the goal
        (0.024, 0.021, 0.019, False),  # in the fingers
    ],
)
def test_what_counts_as_dropped(height, distance, reach, dropped):
    assert rewards._dropped(height, 0.02, distance, reach) == dropped
