"""Adam with one step count for all parameters that move together.

torch.optim.Adam counts for each parameter; on a CPU that and its bookkeeping cost as much as the
arithmetic of a small network. The arithmetic here is torch's own fused kernel.
"""

from collections.abc import Iterable, Mapping, Sequence

import torch
from torch import Tensor

from cwbench.learner.compiler import compiled
from cwbench.learner.runaxis import clip_scale, like

BETAS = (0.9, 0.999)
LANES = 16  # float32 numbers in the widest vector registers that torch uses on a CPU

Tensors = Mapping[str, Tensor]


@torch.no_grad()
def _descend(
    params: Tensors,
    grads: Tensors,
    mean: Tensors,
    square: Tensors,
    steps: Tensor,
    target: Tensors,
    groups: Sequence[Sequence[str]],
    *,
    clip: float | None,
    polyak: float,
    lr: float,
    eps: float,
) -> None:
    steps += 1
    first, second = 1 - BETAS[0] ** steps, 1 - BETAS[1] ** steps
    for names in groups:
        scale = clip_scale([grads[name] for name in names], clip) if clip else None
        for name in names:
            grad = grads[name] if scale is None else grads[name] * like(scale, grads[name])
            mean[name].lerp_(grad, 1 - BETAS[0])
            square[name].mul_(BETAS[1]).addcmul_(grad, grad, value=1 - BETAS[1])
            params[name].sub_(lr / first * mean[name] / ((square[name] / second).sqrt() + eps))
            if name in target:
                target[name].lerp_(params[name], 1 - polyak)


def _split(tensors: Iterable[Tensor]) -> list[Tensor]:
    """The tensors, split by run where torch's kernel would treat runs differently.

    It computes whole vectors first, then the elements left over, and rounds those differently.
    Which elements are left over must not depend on how many runs there are.
    """
    pieces: list[Tensor] = []
    for x in tensors:
        runs_fill_vectors = x.numel() // len(x) % LANES == 0
        if x.is_cuda:
            pieces.append(x.contiguous())  # as the weights: its kernel refuses other strides
        else:
            pieces += [x] if len(x) == 1 or runs_fill_vectors else x.unbind()
    return pieces


class Adam:
    """Moments of every parameter, under its name.

    `parts` are names that move together; by default all do.
    """

    def __init__(
        self,
        params: Mapping[str, Tensor],
        *,
        lr: float,
        eps: float,
        parts: Sequence[Sequence[str]] = (),
    ) -> None:
        self.params, self.lr, self.eps = dict(params), lr, eps
        self.mean = {name: torch.zeros_like(p) for name, p in params.items()}
        self.square = {name: torch.zeros_like(p) for name, p in params.items()}
        device = next(iter(params.values())).device
        self.parts = [list(part) for part in parts or (self.params,)]
        # Tensors, because a captured update reads them; of this type, because torch's kernel does.
        self.steps = [torch.zeros((), dtype=torch.float32, device=device) for _ in self.parts]
        self._pieces = [
            [
                _split([table[name].detach() for name in part])
                for table in (self.params, self.mean, self.square)
            ]
            for part in self.parts
        ]

    @torch.no_grad()
    def step(self, grads: Mapping[str, Tensor]) -> None:
        """Move the parts that have gradients."""
        for part, steps, (params, mean, square) in zip(
            self.parts, self.steps, self._pieces, strict=True
        ):
            if part[0] not in grads:
                continue
            steps += 1
            grad_pieces = _split([grads[name] for name in part])
            torch._fused_adam_(
                params,
                grad_pieces,
                mean,
                square,
                [],
                [steps] * len(grad_pieces),
                lr=self.lr,
                beta1=BETAS[0],
                beta2=BETAS[1],
                weight_decay=0.0,
                eps=self.eps,
                amsgrad=False,
                maximize=False,
            )

    def fused_step(
        self,
        grads: Mapping[str, Tensor],
        groups: Sequence[Sequence[str]],
        clip: float | None,
        target: Mapping[str, Tensor],
        polyak: float,
    ) -> None:
        """Clipping, this step and the averaging of targets, joined by the compiler.

        Each tensor is read and written once; apart, the three take twice as long on a GPU.
        """
        params = {name: p.detach() for name, p in self.params.items()}
        for part, steps in zip(self.parts, self.steps, strict=True):
            if part[0] in grads:
                compiled(_descend, steps.device.type)(
                    params,
                    grads,
                    self.mean,
                    self.square,
                    steps,
                    target,
                    [names for names in groups if names[0] in part],
                    clip=clip,
                    polyak=polyak,
                    lr=self.lr,
                    eps=self.eps,
                )

    def state(self, runs: int) -> dict[str, Tensor]:
        """Under flat names, with a run axis: a run's file gets a copy of the count."""
        state = {}
        for part, steps in zip(self.parts, self.steps, strict=True):
            for name in part:
                state[f"{name}.exp_avg"] = self.mean[name]
                state[f"{name}.exp_avg_sq"] = self.square[name]
                state[f"{name}.step"] = steps.expand(runs)
        return state

    def load(self, state: Mapping[str, Tensor]) -> None:
        for part, steps in zip(self.parts, self.steps, strict=True):
            for name in (name for name in part if f"{name}.step" in state):
                self.mean[name].copy_(state[f"{name}.exp_avg"])
                self.square[name].copy_(state[f"{name}.exp_avg_sq"])
                steps.copy_(state[f"{name}.step"][0])
