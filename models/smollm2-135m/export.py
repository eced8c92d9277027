"""SmolLM2-135M reading a prompt: every token of it at once, and for each the scores of the next one."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch
from torch import Tensor, nn

LAYERS, WIDTH, INNER, WORDS = 30, 576, 1536, 49152
HEADS, SHARED, SIZE = 9, 3, 64  # heads of the queries, of keys and values, and numbers in each
THETA, EPSILON = 100000.0, 1e-5
LATER = -1e4  # added to the scores of tokens that come later; the least float32 would leave fp16's range


class _Norm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        """Root mean square 1, times the weight."""
        return x * torch.rsqrt((x * x).mean(dim=-1, keepdim=True) + EPSILON) * self.weight


class _Layer(nn.Module):
    """Attention, then a gated network; around both a shortcut. The names are those of the GGUF file."""

    def __init__(self) -> None:
        super().__init__()
        self.attn_norm, self.ffn_norm = _Norm(), _Norm()
        self.attn_q = nn.Linear(WIDTH, HEADS * SIZE, bias=False)
        self.attn_k, self.attn_v = (nn.Linear(WIDTH, SHARED * SIZE, bias=False) for _ in range(2))
        self.attn_output = nn.Linear(HEADS * SIZE, WIDTH, bias=False)
        self.ffn_gate, self.ffn_up = (nn.Linear(WIDTH, INNER, bias=False) for _ in range(2))
        self.ffn_down = nn.Linear(INNER, WIDTH, bias=False)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, bias: Tensor) -> Tensor:
        """float32 [1, t, WIDTH] to the same shape."""
        normed = self.attn_norm(x)
        query = _turned(_heads(self.attn_q(normed), HEADS), cos, sin)
        key = _turned(_heads(self.attn_k(normed), SHARED), cos, sin).repeat_interleave(HEADS // SHARED, dim=1)
        value = _heads(self.attn_v(normed), SHARED).repeat_interleave(HEADS // SHARED, dim=1)
        scores = torch.softmax(query @ key.transpose(2, 3) / math.sqrt(SIZE) + bias, dim=3)
        x = x + self.attn_output((scores @ value).transpose(1, 2).flatten(2))
        normed = self.ffn_norm(x)
        return x + self.ffn_down(nn.functional.silu(self.ffn_gate(normed)) * self.ffn_up(normed))


def _heads(x: Tensor, count: int) -> Tensor:
    return x.unflatten(2, (count, SIZE)).transpose(1, 2)


def _turned(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary positions: the first half of each head with the second."""
    first, second = x.chunk(2, dim=3)
    return x * cos + torch.cat([-second, first], dim=3) * sin


class SmolLm(nn.Module):
    """Tokens int32 [1, t] and a mask float32 [1, t] to scores float32 [1, t, 49152].

    The mask is 1 where there is a token and 0 for padding, which comes last. The scores of padding are 0: what a
    network makes of tokens that are none is not worth comparing.
    """

    def __init__(self, length: int) -> None:
        super().__init__()
        self.token_embd = nn.Embedding(WORDS, WIDTH)
        self.blk = nn.ModuleList(_Layer() for _ in range(LAYERS))
        self.output_norm = _Norm()
        angles = torch.outer(torch.arange(length), THETA ** (-torch.arange(0, SIZE, 2) / SIZE)).repeat(1, 2)
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)
        self.register_buffer("bias", torch.full((length, length), LATER).triu(1), persistent=False)

    def forward(self, tokens: Tensor, mask: Tensor) -> Tensor:
        """See the class."""
        x = self.token_embd(tokens)
        for layer in self.blk:
            x = layer(x, self.cos, self.sin, self.bias)
        return (self.output_norm(x) @ self.token_embd.weight.T) * mask[:, :, None]


def prefill(*, bucket: dict[str, int], sources: dict[str, Path]) -> dict[str, Any]:
    """The network for bucket["tokens"] tokens, its weights unpacked from the GGUF file."""
    file = gguf.read(sources["weights"])
    module = SmolLm(bucket["tokens"])
    module.load_state_dict({name: torch.from_numpy(_weight(file, name)) for name in file.tensors})
    shape = (1, bucket["tokens"])
    return {
        "module": module,
        "inputs": {"tokens": torch.zeros(shape, dtype=torch.int32), "mask": torch.ones(shape)},
        "outputs": ["scores"],
    }


def _weight(file: gguf.Gguf, name: str) -> gguf.Floats:
    """A tensor as this module has it: GGUF keeps the two numbers that are turned together side by side."""
    weight = file.tensor(name)
    if name.endswith(("attn_q.weight", "attn_k.weight")):
        weight = weight.reshape(-1, SIZE // 2, 2, WIDTH).swapaxes(1, 2).reshape(weight.shape)
    return np.ascontiguousarray(weight)
