"""Wrong input to every command: exit code 2, one line that names the value, nothing written."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from cwbench.cli import main

RUN = ["run", "--method", "finetuning", "--seq", "cw3-1"]
RECALL = ["run", "--method", "recall", "--seq", "cw3-1"]
PAIRS = ["pairwise", "--tasks", "2,5"]
DEEP = "[" * 5000
JOB = {"schema": 1, "methods": {}, "segments": [], "protocol": "smoke", "command": ""}
SWEEP = 'sequences = ["cw3-1"]\n[[methods]]\nname = "recall"\n'
SWEEP += "".join(f"options.{name} = [{', '.join(str(k) for k in range(1, 200))}]\n"
                 for name in ("horizon", "width", "batch-size", "eval-episodes"))  # fmt: skip
HOOK = """from cwbench.learner import Method
class {name}(Method):
    def actor_penalty(self, batch):
        return {value}
"""
GYM = 'suite = "gymnasium"\n[[task]]\nid = "{id}"\nscore = {score}\n{more}'
FILES = {
    "discrete.toml": GYM.format(id="CartPole-v1", score='"success"', more=""),
    "package.toml": GYM.format(id="no_such_package:Env-v0", score='"success"', more=""),
    "bounds.toml": GYM.format(id="Pendulum-v1", score="{ return_from = 0.0 }", more=""),
    "wrapper.toml": GYM.format(
        id="Pendulum-v1", score='"success"', more='wrappers = ["math:sqrt"]\n'
    ),
    "afile": "mine",
    "bad.toml": "tasks = = 3",
    "deep.toml": f"tasks = {DEEP}",
    "empty.toml": "",
    "suite.toml": GYM.format(id="Pendulum-v1", score='"success"', more="").partition("\n")[2],
    "keys.toml": 'tasks = ["push"]\nseed = 3\n',
    "name.toml": 'name = "../x"\ntasks = ["push"]\n',
    "sweep.toml": SWEEP,
    "experiment.toml": 'methods = ["recall"]\nsequences = ["cw3-1"]\nseeds = "0,0"\n',
    "nan.toml": 'sequences = ["cw3-1"]\n[[methods]]\nname = "recall"\noptions.lr = nan\n',
    "many.toml": 'methods = ["recall"]\nsequences = ["pair-*"]\nseeds = "0-9999"\n',
    "bad.json": "{",
    "deep.json": DEEP,
    "list.json": "[1]",
    "other.json": '{"a": 1}',
    "newer.json": json.dumps(JOB | {"schema": 99}),
    "nothing.json": json.dumps(JOB),
    "damaged.json": json.dumps(JOB | {"methods": {"l2": "l2"}, "segments": [{"method": "l2"}]}),
    "broken.py": "import nothing_of_this_name\n",
    "other.py": "class Thing: ...\n",
    "hook.py": HOOK.format(name="Hook", value="1 / 0"),
    "misspelt.py": HOOK.format(name="Misspelt", value="0").replace("penalty", "penality"),
    "scalar.py": HOOK.format(name="Scalar", value="batch.reward.sum()"),
    "notable.tex": "no table",
}

WORDS = [
    # Names
    ([*RUN[:2], "finetunning", *RUN[3:]], "unknown method 'finetunning'; did you mean"),
    ([*RUN[:2], "xyz", *RUN[3:]], "unknown method 'xyz'; `cwbench methods` lists all"),
    ([*RUN[:2], "", *RUN[3:]], "unknown method ''"),
    ([*RUN[:2], "afile", *RUN[3:]], "unknown method 'afile'"),
    ([*RUN[:2], "other.py", *RUN[3:]], "write other.py:ClassName"),
    ([*RUN[:2], "nowhere.py:Thing", *RUN[3:]], "nowhere.py: no such file"),
    ([*RUN[:2], "broken.py:Thing", *RUN[3:]], "broken.py line 1: ModuleNotFoundError"),
    ([*RUN[:2], "other.py:Thing", *RUN[3:]], "'Thing' is not a class derived from Method"),
    ([*RUN[:2], "other.py:Absent", *RUN[3:]], "'Absent' is not a class derived from Method"),
    ([*RUN[:-1], "cw3-11"], "unknown sequence 'cw3-11'; did you mean"),
    ([*RUN[:-1], "zzz"], "unknown sequence 'zzz'; a sequence is one of"),
    ([*RUN[:-1], ""], "unknown sequence ''"),
    ([*RUN[:-1], "push,hamer"], "unknown task 'hamer'; did you mean 'hammer'?"),
    ([*RUN[:-1], "push,"], "unknown task ''"),
    ([*RUN[:-1], "single-foo"], "unknown task 'foo'"),
    ([*RUN[:-1], "pair-0-10"], "two task ids from 0 to 9"),
    ([*RUN[:-1], "cw4-*"], "no sequence has a name like 'cw4-*'"),
    ([*RUN[:-1], "nowhere.toml"], "nowhere.toml: no such file"),
    ([*RUN[:-1], "bad.toml"], "bad.toml: Invalid value"),
    ([*RUN[:-1], "deep.toml"], "deep.toml: nested too deeply"),
    ([*RUN[:-1], "empty.toml"], "sequence file empty.toml"),
    ([*RUN[:-1], "keys.toml"], "unknown key"),
    ([*RUN[:-1], "suite.toml"], 'are for the gymnasium suite; write suite = "gymnasium" above'),
    ([*RUN[:-1], "name.toml"], "sequence file name.toml"),
    ([*RUN[:-1], "binary.toml"], "binary.toml: not a text file"),
    ([*RUN[:-1], "pipe.toml"], "pipe.toml: not a file"),
    ([*RUN[:-1], "folder.toml"], "folder.toml: not a file"),
    ([*RUN, "--protocol", "papper"], "unknown protocol 'papper'; did you mean 'paper'?"),
    ([*RUN, "--protocol", "zzz"], "unknown protocol 'zzz'; known: paper"),
    ([*RUN, "--unshared", "policy"], "'policy' is neither actor nor critic"),
    ([*RECALL, "--unshared", "critic", "--critic-head-layers", "2"], "give only one"),
    # Seeds
    ([*RUN, "--seeds", "a-b"], "'a-b' is not a list of seeds"),
    ([*RUN, "--seeds", ""], "'' is not a list of seeds"),
    ([*RUN, "--seeds", "-1"], "'-1' is not a list of seeds"),
    ([*RUN, "--seeds", "1.5"], "'1.5' is not a list of seeds"),
    ([*RUN, "--seeds", "1,,2"], "'1,,2' is not a list of seeds"),
    ([*RUN, "--seeds", "٣"], "is not a list of seeds"),
    ([*RUN, "--seeds", "4-2"], "runs backwards"),
    ([*RUN, "--seeds", "0,1,0"], "names seed 0 twice"),
    ([*RUN, "--seeds", "0-3,2"], "names seed 2 twice"),
    ([*RUN, "--seeds", "12345678901234567890"], "is too large; seeds run from 0 to 2,147,483,647"),
    ([*RUN, "--seeds", "0-999999"], "is 1,000,000 seeds; one command takes at most 10,000"),
    ([*RUN, "--seeds", "0-9999999999"], "is too large"),
    ([*RUN, "--seeds", "9" * 5000], "is not a list of seeds"),
    (["run", "--method", "l2", "--seq", "pair-*", "--seeds", "0-9999"], "1,000,000 runs"),
    # Numbers
    ([*RUN, "--lr", "nan"], "nan is not a finite number"),
    ([*RUN, "--lr", "inf"], "inf is not a finite number"),
    ([*RUN, "--lr=-inf"], "-inf is not a finite number"),
    ([*RUN, "--lr", "fast"], "'fast' is not a number"),
    ([*RUN, "--lr", ""], "'' is not a number"),
    ([*RUN, "--lr=-1"], "-1.0 is too small; the smallest value is 0"),
    ([*RUN, "--lr", "1e300"], "is too large"),
    ([*RUN, "--gamma", "2"], "2.0 is too large; the largest value is 1"),
    ([*RUN, "--gamma=-0.1"], "-0.1 is too small"),
    ([*RUN, "--gamma", "nan"], "not a finite number"),
    ([*RUN, "--polyak", "1.5"], "1.5 is too large"),
    ([*RUN, "--polyak", "inf"], "not a finite number"),
    ([*RECALL, "--beta", "1.5"], "1.5 is too large; the largest value is 1"),
    ([*RUN[:2], "multitask", *RUN[3:], "--beta", "2"], "2.0 is too large; the largest value is 1"),
    ([*RUN[:2], "continual-backprop", *RUN[3:], "--decay", "1"], "the largest value is 0.99999"),
    ([*RUN[:2], "continual-backprop", *RUN[3:], "--every", "100"], "write --at-once 3"),
    ([*RUN[:2], "reset-distill", *RUN[3:], "--reset", "actor"], "leave actor out"),
    ([*RUN, "--adam-eps", "nan"], "not a finite number"),
    ([*RUN, "--adam-eps=-1e-7"], "-1e-07 is too small"),
    ([*RUN, "--adam-eps", "0"], "0.0 is too small; the smallest value is 1e-30"),
    ([*RUN, "--target-std", "0"], "0.0 is too small; it must be above 0"),
    ([*RUN, "--target-std", "nan"], "not a finite number"),
    ([*RUN, "--clip-norm=-1"], "-1.0 is too small"),
    ([*RUN, "--clip-norm", "inf"], "not a finite number"),
    ([*RUN, "--batch-size", "0"], "0 is too small; the smallest value is 1"),
    ([*RUN, "--batch-size", "1000000000"], "1000000000 is too large"),
    ([*RUN, "--batch-size", "12.5"], "'12.5' is not a whole number"),
    ([*RUN, "--batch-size", "nan"], "'nan' is not a whole number"),
    ([*RUN, "--batch-size", "1e400"], "'1e400' is not a whole number"),
    ([*RUN, "--batch-size", "9" * 5000], "is not a whole number"),
    ([*RUN, "--buffer-size", "64"], "--buffer-size 64 is smaller than a batch"),
    ([*RUN, "--buffer-size", "1e15"], "is too large"),
    ([*RUN, "--width", "0"], "0 is too small"),
    ([*RUN, "--width", "10000000"], "10000000 is too large; the largest value is 65,536"),
    ([*RUN, "--width", "65536", "--layers", "100"], "one run of finetuning needs at least"),
    ([*RUN, "--layers", "100000"], "100000 is too large; the largest value is 100"),
    ([*RUN, "--layers", "0"], "0 is too small"),
    ([*RUN[:4], "discrete.toml"], "task CartPole-v1: its action space is Discrete, not Box"),
    ([*RUN[:4], "package.toml"], "task Env-v0: ModuleNotFoundError: No module named"),
    ([*RUN[:4], "bounds.toml"], "task Pendulum-v1: score {'return_from': 0.0} is not a rule"),
    ([*RUN[:4], "wrapper.toml"], "task Pendulum-v1: TypeError: must be real number"),
    ([*PAIRS, "--seq", "pendulum3"], "task id 5 is too large; task ids run from 0 to 2"),
    ([*RUN, "--critic-head-layers", "5"], "5 is larger than --layers 4; give"),
    ([*RUN, "--actor-head-layers=-1"], "-1 is too small"),
    ([*RUN, "--horizon", "0"], "0 is too small"),
    ([*RUN, "--horizon", "1e9"], "is too large"),
    ([*RUN, "--steps-per-task", "-5"], "-5 is too small; the smallest value is 1"),
    ([*RUN, "--steps-per-task", "many"], "'many' is not a whole number"),
    ([*RUN, "--steps-per-task", "100000000000000"], "is too large; the largest value is 100,000,"),
    ([*RUN, "--steps-per-task", "1e14"], "100000000000000 is too large"),
    ([*RUN, "--steps-per-task", "1.5e0"], "'1.5e0' is not a whole number"),
    ([*RUN, "--steps-per-task", "500"], "leaves no update in a task of 500 steps"),
    ([*RUN, "--push-back-shaping", "--reward", "v2"], "-shaping has no effect with --reward v2"),
    ([*RUN, "--push-back-shaping", "--protocol", "componet"], "has no effect with --reward v2"),
    ([*RUN, "--no-hammer-nail", "--obs", "full39"], "-nail has no effect with --obs full39; leave"),
    ([*RUN, "--update-after", "1e6"], "leaves no update in a task of 1000000 steps"),
    (
        [*RUN, "--protocol", "smoke", "--update-every", "1000"],
        "--update-after 100 with --update-every 1000 leaves no update in a task of 600 steps",
    ),
    ([*RUN, "--eval-every", "0"], "0 is too small"),
    ([*RUN, "--eval-episodes", "1e6"], "is too large"),
    ([*RUN, "--start-steps=-1"], "-1 is too small"),
    ([*RUN, "--update-every", "0"], "0 is too small"),
    ([*RUN, "--obs", "cw13"], "'cw13' is not one of"),
    ([*RUN, "--reward", ""], "'' is not one of"),
    ([*RECALL, "--lambda", "nan"], "not a finite number"),
    ([*RECALL, "--lambda=-1"], "-1.0 is too small"),
    ([*RECALL, "--lambda", "1e35"], "is too large"),
    ([*RECALL, "--beta", "inf"], "not a finite number"),
    ([*RECALL, "--selection-episodes", "0"], "0 is too small"),
    ([*RECALL, "--selection-episodes", "1e12"], "is too large"),
    ([*RUN, "--lambda", "3"], "finetuning has no option --lambda, which is one of recall"),
    ([*RUN, "--lr"], "requires an argument"),
    ([*RUN, "extra"], "unexpected extra argument"),
    # How and where to train
    ([*RUN, "--device", "gpu"], "'gpu' is not one of"),
    ([*RUN, "--workers", "0"], "0 is too small"),
    ([*RUN, "--workers", "1e9"], "is too large"),
    ([*RUN, "--threads", "0"], "0 is too small"),
    ([*RUN, "--fleet-size", "0"], "0 is too small"),
    ([*RUN, "--snapshot-minutes", "nan"], "nan is not a finite number"),
    ([*RUN, "--snapshot-minutes", "inf"], "inf is not a finite number"),
    ([*RUN, "--snapshot-minutes=-1"], "-1.0 is too small"),
    ([*RUN, "--launcher", "bus"], "'bus' is not one of"),
    ([*RUN, "--slurm-partition", "gpu"], "--slurm-partition has no effect with --launcher local"),
    ([*RUN, "--slurm-time", "0"], "0 is too small"),
    ([*RUN, "--slurm-set", "a=b"], "--slurm-set has no effect with --launcher local"),
    ([*RUN, "--launcher", "slurm", "--slurm-set", "account"], "write NAME=VALUE"),
    ([*RUN, "--launcher", "slurm", "--ray-address", "auto"], "--ray-address has no effect"),
    ([*RUN, "--cpus-per-fleet", "4"], "--cpus-per-fleet has no effect with --launcher local"),
    ([*RUN, "--launcher", "print", "--fleets-per-gpu", "2"], "--fleets-per-gpu has no effect"),
    ([*RUN, "--results", "afile"], "afile is a file, not a folder"),
    ([*RUN, "--results", "afile/below"], "afile is a file, not a folder"),
    ([*RUN, "--results", "/proc/x"], "is not writable"),
    (["run", "--seq", "cw3-1"], "Missing option '--method'"),
    (["run", "--method", "l2"], "Missing option '--seq'"),
    # Pairs
    ([*PAIRS[:-1], "foo"], "'foo' is not a list of task ids"),
    ([*PAIRS[:-1], "3-10"], "task id 10 is too large; task ids run from 0 to 9"),
    ([*PAIRS[:-1], "2,2"], "names task id 2 twice"),
    ([*PAIRS, "--seeds", "0,0"], "names seed 0 twice"),
    ([*PAIRS, "--method", "recal"], "unknown method 'recal'; did you mean 'recall'?"),
    ([*PAIRS, "--protocol", "smok"], "did you mean 'smoke'?"),
    (["pairwise", "--seeds", "0-9999"], "runs are too many; one command takes at most 100,000"),
    # Experiments
    (["experiment"], "Missing argument"),
    (["experiment", "cw4"], "unknown experiment 'cw4'; did you mean"),
    (["experiment", "list", "foo"], "write `experiment list` or `experiment show NAME`"),
    (["experiment", "show"], "write `experiment list` or `experiment show NAME`"),
    (["experiment", "show", "cw4"], "unknown experiment 'cw4'"),
    (["experiment", "nowhere.toml"], "nowhere.toml: no such file"),
    (["experiment", "bad.toml"], "bad.toml: Invalid value"),
    (["experiment", "deep.toml"], "deep.toml: nested too deeply"),
    (["experiment", "empty.toml"], "empty.toml: sequences: expected a list"),
    (["experiment", "binary.toml"], "binary.toml: not a text file"),
    (["experiment", "pipe.toml"], "pipe.toml: not a file"),
    (["experiment", "experiment.toml"], "names seed 0 twice"),
    (["experiment", "nan.toml"], "lr: nan is not a finite number"),
    (["experiment", "sweep.toml"], "1,568,239,201 runs are too many"),
    (["experiment", "many.toml"], "1,000,000 runs are too many"),
    (["experiment", "cw3", "--seeds", "x"], "'x' is not a list of seeds"),
    (["experiment", "cw3", "--protocol", "smok"], "did you mean 'smoke'?"),
    # Jobs
    (["train"], "Missing argument"),
    (["train", "nowhere.json"], "nowhere.json: no such file"),
    (["train", "bad.json"], "bad.json: not a job file"),
    (["train", "bad.toml"], "bad.toml: not a job file"),
    (["train", "deep.json"], "deep.json: not a job file"),
    (["train", "list.json"], "list.json: not a job file"),
    (["train", "other.json"], "other.json: not a job file"),
    (["train", "newer.json"], "newer.json: written by a newer cwbench; upgrade"),
    (["train", "nothing.json"], "nothing.json: not a job file"),
    (["train", "damaged.json"], "damaged.json: not a job file: its segments are damaged"),
    (["train", "binary.toml"], "not a text file"),
    (["train", "folder.toml"], "folder.toml: not a file"),
    (["train", "pipe.toml"], "pipe.toml: not a file"),
    # Tuning
    (["tune", "ewc"], "Missing option '--on'"),
    (["tune", "ewc", "--on", "cw3-1", "--option", "coef"], "--option coef: no values; write NAME="),
    (["tune", "ewc", "--on", "cw3-1", "--option", "coef=1,x"], "'x' is not a number"),
    (["tune", "ewc", "--on", "cw3-1", "--option", "coef=1,2,1"], "[1.0, 2.0, 1.0] names 1.0 twice"),
    (
        ["tune", "ewc", "--on", "cw3-1", "--option", "coef=1", "--option", "coef=2"],
        "--option coef is given twice",
    ),
    (["tune", "ewc", "--on", "cw3-1", "--option", "coef=1", "--first", "0"], "0.0 is too small"),
    ([*RUN, "--tuned", "nowhere.json"], "nowhere.json: no such file"),
    ([*RUN, "--tuned", "nothing.json"], "nothing.json: not a file of `cwbench tune`"),
    # A results folder
    (["status", "nowhere"], "nowhere: no such folder; `cwbench run` creates one"),
    (["status", "afile"], "afile: no such folder"),
    (["status", "--runs", "--all"], "--all has no effect with --runs"),
    (["status", "--runs", "--errors"], "--errors has no effect with --runs"),
    (["retry", "nowhere"], "nowhere: no such folder"),
    (["retry", "nowhere", "--results", "x"], "--results is not an option here"),
    (["retry", "nowhere", "--workers", "0"], "0 is too small"),
    (["clean", "nowhere"], "nowhere: no such folder"),
    (["merge", "nowhere"], "Missing option"),
    (["board", "nowhere"], "--out SITE is missing"),
    (["report", "nowhere"], "no results folder at 'nowhere'"),
    (["report", "folder.toml", "afile"], "afile is a file, not a folder"),
    (["report", "folder.toml", "/proc/x"], "report folder /proc/x: /proc is not writable"),
    (["report", "--window", "0"], "0 is too small"),
    (["report", "--window", "nan"], "'nan' is not a whole number"),
    (["report", "--level", "nan"], "nan is not a finite number"),
    (["report", "--level", "2"], "2.0 is too large"),
    (["report", "--format", "csv"], "need --table NAME"),
    (["report", "results", "out.csv"], "out.csv is named like a table's file; --table NAME"),
    (["report", "--table", "cw3", "--png"], "--table NAME writes none"),
    (["report", "a", "b", "c"], "too many arguments"),
    (["verify", "nowhere.tex"], "does not exist"),
    (["verify", "notable.tex"], "this is not a table"),
    (["verify", "pipe.toml"], "pipe.toml: not a file"),
    # The rest
    (["retry", "--results", "x"], "--results is not an option here; write `cwbench retry RESULTS`"),
    (["ruin"], "unknown command 'ruin'; did you mean 'run'?"),
    (["zzz"], "unknown command 'zzz'; `cwbench --help` lists all"),
    (["--nothing"], "unknown option"),
    (["bench", "zzz"], "unknown command 'zzz'; `cwbench bench --help` lists all"),
    (["bench", "updat"], "did you mean 'update'?"),
    (["bench", "envs", "--tasks", ""], "no fast environment ''; there are: hammer, "),
    (["bench", "envs", "--tasks", "basketball"], "no fast environment 'basketball'"),
    (["bench", "envs", "--against", "gym"], "'gym' is not one of"),
    (["bench", "envs", "--against", "envpool", "--tasks", "pushh"], "no fast environment 'pushh'"),
    (["bench", "envs", "--seconds", "nan"], "nan is not a finite number"),
    (["bench", "envs", "--seconds", "inf"], "inf is not a finite number"),
    (["bench", "update", "--runs", "1,none"], "is not a list of numbers"),
    (["bench", "update", "--runs", "1000000000000"], "is not a list of numbers"),
    (["bench", "update", "--threads", "0"], "is not a list of numbers"),
    (["bench", "update", "--threads", ""], "is not a list of numbers"),
    (["bench", "update", "--length", "11"], "11 is too large"),
    (["bench", "fleet", "--runs", "0"], "not a list of numbers"),
    (["bench", "fleet", "--steps", "699"], "699 is too small; the smallest value is 700"),
    (["completion", "tcsh"], "'tcsh' is not one of"),
    ([*RUN, "--json"], "--json has no effect without --dry-run"),
    (["check", "finetunning"], "unknown method 'finetunning'; did you mean 'finetuning"),
    (["check", "other.py"], "write other.py:ClassName"),
    (["new-method", "3d"], "'3d' is not a name for a method; use letters"),
    (["new-method", "class"], "'class' is a Python keyword; choose another name"),
    (["new-method", "x", "--folder", "nowhere"], "--folder nowhere: no such folder"),
    (["new-method", "torch"], "torch is a Python package, which torch.py would hide"),
    (["new-method", "other"], "other.py exists; choose another name or --folder"),
    ([*RUN[:2], "hook.py:Hook", *RUN[3:]], "hook.py line 4, in actor_penalty: ZeroDivisionError"),
    ([*RUN[:2], "hook.py:Hok", *RUN[3:]], "'Hok' is not a class derived from Method; it has Hook"),
    ([*RUN[:2], "misspelt.py:Misspelt", *RUN[3:]], "nothing uses actor_penality of Misspelt"),
    (["check", "misspelt.py:Misspelt"], "did you mean actor_penalty?"),
    ([*RUN[:2], "scalar.py:Scalar", *RUN[3:]], "returned shape [], expected [1]"),
    (["video", "nowhere"], "nowhere is neither a results folder nor a segment's folder"),
    (["video", "nowhere", "--seed", "x"], "'x' is not a whole number"),
    (["track", "nowhere", "--to", "wandb"], "nowhere: no such folder"),
    (["track", "--to", "mlflow"], "'mlflow' is not one of"),
    (["export", "folder.toml", "--to", "weights"], "folder.toml has no finished task"),
    (["export", "folder.toml"], "Missing option '--to'"),
    (["push", "folder.toml", "hf:me/runs"], "folder.toml has no results to share"),
    (["pull", "nowhere", "new"], "nowhere: no such folder; write hf:USER/NAME or a folder"),
    (["pull", "hf:me", "new"], "'hf:me' is not an address on the Hub; write hf:USER/NAME"),
    (["doctor", "extra"], "extra: no such folder"),
    (["status", ""], "a path is empty; write . for the current folder"),
    (["run", "--method", "l2", "--seq", "cw3-1", "--results", ""], "--results is empty; write ."),
    (["report", "--results", ""], "--results is empty"),
    (["report", ""], "a path is empty; write . for the current folder"),
    (["report", "folder.toml", ""], "a path is empty"),
    (["doctor", "folder.toml"], "folder.toml: not a results folder"),
    (["repair", "nowhere"], "nowhere: no such folder"),
    (["repair", "folder.toml"], "folder.toml: not a results folder; it has no segments"),
    (["clean", "folder.toml"], "folder.toml: not a results folder"),
    (["retry", "folder.toml"], "folder.toml: not a results folder"),
    (["pull", "folder.toml", "afile"], "afile is a file, not a folder"),
    (["push", "folder.toml", "afile/below"], "afile is a file, not a folder"),
    (["export", "folder.toml", "--to", "weights", "--out", "afile"], "afile is a file, not a"),
    (["merge", "folder.toml", "--into", "afile/below"], "afile is a file, not a folder"),
    (["board", "folder.toml", "--out", "afile"], "afile is a file, not a folder"),
    (["methods", "--all"], "unknown option"),
    ([*RUN, "--foo"], "unknown option '--foo'; `cwbench run --method finetuning --help` lists all"),
    ([*RUN, "--widht", "9"], "unknown option '--widht'; did you mean '--width'?"),
]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    root = tmp_path_factory.mktemp("input")
    for name, text in FILES.items():
        (root / name).write_text(text)
    (root / "binary.toml").write_bytes(bytes(range(256)))
    (root / "folder.toml").mkdir()
    os.mkfifo(root / "pipe.toml")
    before = os.getcwd()
    os.chdir(root)
    yield root
    os.chdir(before)


def tree(root: Path) -> dict[str, int]:
    """Everything below a folder, apart from what Python caches of imported files."""
    files = (file for file in root.rglob("*") if "__pycache__" not in file.parts)
    return {str(file.relative_to(root)): file.lstat().st_size for file in files}


def test_the_table_is_long_and_names_every_command() -> None:
    from cwbench.cli import COMMANDS

    assert len(WORDS) >= 120
    assert COMMANDS.keys() - {"sequences", "tasks"} <= {args[0] for args, _ in WORDS}


@pytest.mark.parametrize(
    ("args", "words"), WORDS, ids=[" ".join(args)[:60] or "-" for args, _ in WORDS]
)
def test_bad_input_is_one_line_and_writes_nothing(
    args: list[str], words: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = tree(folder)
    with pytest.raises(SystemExit) as exit_code:
        main(args)
    captured = capsys.readouterr()
    assert exit_code.value.code == 2, captured.err
    [line] = captured.err.splitlines()
    assert words in line
    assert not captured.out
    assert tree(folder) == before
