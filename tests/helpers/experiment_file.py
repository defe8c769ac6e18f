"""An experiment file of a user's own."""

FILE = """
name = "mine"
seeds = [0, 2]
protocol = "smoke"
sequences = ["push,window-close"]
options.steps-per-task = 400
options.eval_every = 200
options.update-after = 100
options.start-steps = 100

[[methods]]
name = "recall"
options.lambda = [1, 10]
"""
