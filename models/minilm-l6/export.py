"""all-MiniLM-L6: a BERT of six layers, its tokens averaged and brought to length 1."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

LAYERS, WIDTH, HEADS, INNER = 6, 384, 12, 1536
WORDS, POSITIONS, KINDS = 30522, 512, 2
EPSILON = 1e-12
MASKED = -1e4  # added to the scores of padding; the least float32 would leave fp16's range


class _Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.self = nn.ModuleDict({name: nn.Linear(WIDTH, WIDTH) for name in ("query", "key", "value")})
        self.output = nn.ModuleDict({"dense": nn.Linear(WIDTH, WIDTH), "LayerNorm": nn.LayerNorm(WIDTH, EPSILON)})

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """float32 [n, t, WIDTH], mask [n, 1, 1, t] to add to the scores; the same shape as x."""
        query, key, value = (
            layer(x).unflatten(2, (HEADS, WIDTH // HEADS)).transpose(1, 2) for layer in self.self.values()
        )
        scores = query @ key.transpose(2, 3) / math.sqrt(WIDTH // HEADS) + mask
        heads = torch.softmax(scores, dim=3) @ value
        return self.output["LayerNorm"](x + self.output["dense"](heads.transpose(1, 2).flatten(2)))


class _Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = _Attention()
        self.intermediate = nn.ModuleDict({"dense": nn.Linear(WIDTH, INNER)})
        self.output = nn.ModuleDict({"dense": nn.Linear(INNER, WIDTH), "LayerNorm": nn.LayerNorm(WIDTH, EPSILON)})

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """As _Attention."""
        x = self.attention(x, mask)
        inner = nn.functional.gelu(self.intermediate["dense"](x))
        return self.output["LayerNorm"](x + self.output["dense"](inner))


class MiniLm(nn.Module):
    """Tokens int32 [n, t] and a mask float32 [n, t] (1 where there is a token) to sentences float32 [n, 384].

    The names of the layers are those of the weights.
    """

    def __init__(self) -> None:
        super().__init__()
        self.embeddings = nn.ModuleDict(
            {
                "word_embeddings": nn.Embedding(WORDS, WIDTH),
                "position_embeddings": nn.Embedding(POSITIONS, WIDTH),
                "token_type_embeddings": nn.Embedding(KINDS, WIDTH),
                "LayerNorm": nn.LayerNorm(WIDTH, EPSILON),
            }
        )
        self.encoder = nn.ModuleDict({"layer": nn.ModuleList(_Layer() for _ in range(LAYERS))})

    def forward(self, tokens: Tensor, mask: Tensor) -> Tensor:
        """See the class."""
        words, positions, kinds, norm = self.embeddings.values()
        x = norm(words(tokens) + positions.weight[: tokens.shape[1]] + kinds.weight[0])
        for layer in self.encoder["layer"]:
            x = layer(x, ((1 - mask) * MASKED)[:, None, None, :])
        weights = mask / mask.sum(dim=1, keepdim=True)
        mean = (x * weights[:, :, None]).sum(dim=1)
        return mean / torch.sqrt((mean * mean).sum(dim=1, keepdim=True))


def encoder(*, bucket: dict[str, int], sources: dict[str, Path]) -> dict[str, Any]:
    """The network with its weights."""
    module = MiniLm()
    known = module.state_dict()
    module.load_state_dict({name: tensor for name, tensor in _safetensors(sources["weights"]).items() if name in known})
    shape = (bucket["sentences"], bucket["tokens"])
    return {
        "module": module,
        "inputs": {"tokens": torch.zeros(shape, dtype=torch.int32), "mask": torch.ones(shape)},
        "outputs": ["sentences"],
    }


def _safetensors(file: Path) -> dict[str, Tensor]:
    """The float32 tensors of a .safetensors file: the length of a JSON header, the header, the bytes."""
    content = bytearray(file.read_bytes())
    start = 8 + int.from_bytes(content[:8], "little")
    tensors = {}
    for name, entry in json.loads(content[8:start]).items():
        if entry.get("dtype") == "F32":
            first, last = entry["data_offsets"]
            values = torch.frombuffer(content, dtype=torch.float32, count=(last - first) // 4, offset=start + first)
            tensors[name] = values.reshape(entry["shape"])
    return tensors
