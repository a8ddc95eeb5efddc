"""A PyTorch module: a gated feed-forward block."""

import torch
from torch import nn


class GatedMlp(nn.Module):
    def __init__(self, width: int = 512, hidden: int = 2048) -> None:
        super().__init__()
        self.gate = nn.Linear(width, hidden, bias=False)
        self.up = nn.Linear(width, hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:  # (batch, tokens, width)
        return self.down(nn.functional.silu(self.gate(x)) * self.up(x))
