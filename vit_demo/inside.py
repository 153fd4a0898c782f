"""From pixels to the answer in ten steps: every number of one forward pass.

    walk = explanation.inside()
    walk.attention(layer=2, head=1, query=(3, 4)).shares  # softmax(q k^T / sqrt(d)) of one patch

`Inside` runs the model once and keeps the residual stream: what every block gets, what its attention
made of it, what its MLP made of that; O(L N D) numbers. Queries, keys, shares, and all else follow from
what one layer gets, and are computed when somebody asks. A token is named as everywhere: a patch
(row, column) or a token's number; None is the class token, or the middle patch where the mean of all
patches answers. Tensors come on the CPU, in the model's own precision.

    1 pixels   2 patch, patch_products, filters   3 embedding, position_similarity, shuffle
    4 layer_norm, lengths   5, 6 attention   7 heads   8 residual, units
    9 lens, random_lens, ledger   10 answer
"""

import copy
import math
from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vit_demo.labels import find_label
from vit_demo.model import (
    Block,
    UnfoldPatchEmbed,
    VisionTransformer,
    attention_weights,
    readout_tokens,
)
from vit_demo.random_weights import randomise
from vit_demo.recorder import Query, token_of
from vit_demo.validate import index_of, shown, whole
from vit_demo.view import Preprocess

MARKED = 4.0  # a token longer than so many times the median of its layer is unusual


class Pixels(NamedTuple):
    """Step 1. normalised = (values / 255 - mean) / std, for each channel."""

    values: Tensor  # (C, H, W), 0 to 255
    normalised: Tensor  # (C, H, W), what the model gets
    mean: tuple[float, ...]
    std: tuple[float, ...]


class Patch(NamedTuple):
    """Step 2. One patch, and the same D numbers made of it in two ways."""

    pixels: Tensor  # (C, p, q), normalised
    by_convolution: Tensor  # (D,)
    by_unfold: Tensor  # (D,)
    difference: float  # between the two ways, the largest over all patches


class PatchProducts(NamedTuple):
    """Step 2. One of these D numbers: products.sum() + bias."""

    pixels: Tensor  # (C, p, q)
    kernel: Tensor  # (C, p, q)
    bias: float

    @property
    def products(self) -> Tensor:
        return self.pixels * self.kernel

    @property
    def total(self) -> float:
        return float(self.products.sum()) + self.bias


class Filters(NamedTuple):
    """Step 2. Principal components of the patch embedding's kernels; no single one is a filter."""

    components: Tensor  # (k, C, p, q), each of length 1
    variance: Tensor  # (k,), shares of 1


class Embedding(NamedTuple):
    """Step 3. What enters the first block is patches + positions, after the prefix tokens."""

    patches: Tensor  # (n, D)
    positions: Tensor  # (n, D)
    prefix: Tensor  # (P, D), with their positions

    @property
    def lengths(self) -> Tensor:
        """Of each patch, its position and their sum: (3, n)."""
        vectors = torch.stack([self.patches, self.positions, self.patches + self.positions])
        return vectors.norm(dim=-1)


class Shuffled(NamedTuple):
    """Step 3. The patches in another order: with their positions, and without."""

    order: Tensor  # (n,): at place i stands the patch order[i]
    logits: Tensor  # (classes,) as it was
    with_positions: Tensor  # (classes,) the same but for rounding
    without_positions: Tensor  # (classes,) another picture


class Normalised(NamedTuple):
    """Step 4. A token before and after LayerNorm."""

    before: Tensor  # (D,)
    standard: Tensor  # (D,) (before - mean) / deviation
    after: Tensor  # (D,) standard * weight + bias
    mean: float
    deviation: float


class Attention(NamedTuple):
    """Steps 5 and 6. One token asks all tokens, in one head."""

    query: Tensor  # (d,)
    keys: Tensor  # (N, d)
    values: Tensor  # (N, d)
    temperature: float

    @property
    def products(self) -> Tensor:
        """query * key, number by number: (N, d)."""
        return self.query * self.keys

    @property
    def scores(self) -> Tensor:
        """The sums of the products, divided by the root of d: (N,)."""
        return self.products.sum(dim=-1) / math.sqrt(len(self.query))

    @property
    def exponentials(self) -> Tensor:
        """exp(score / temperature), the largest score taken away first: (N,)."""
        return ((self.scores - self.scores.max()) / self.temperature).exp()

    @property
    def shares(self) -> Tensor:
        """The softmax: (N,), with sum 1."""
        return self.exponentials / self.exponentials.sum()

    @property
    def entropy(self) -> float:
        """How widely the look is spread, in bits."""
        return float(torch.special.entr(self.shares).sum()) / math.log(2)


class Heads(NamedTuple):
    """Step 7. What each head of a layer saw for one token, and what it adds to it."""

    shares: Tensor  # (h, N), A
    seen: Tensor  # (h, d), A v
    written: Tensor  # (h, D), A v W_o, times the layer scale if there is one
    bias: Tensor  # (D,), of the projection
    part: Tensor  # (D,), what attention adds to the token: written.sum(0) + bias


class Residual(NamedTuple):
    """Step 8. One token through all layers: the stream, and what is added to it."""

    lengths: Tensor  # (L, 3): of the stream as the block gets it, attention's part, the MLP's part
    cosines: Tensor  # (L, 3): stream and attention, stream + attention and MLP, attention and MLP


class Units(NamedTuple):
    """Step 8. The units of an MLP that add most to one token."""

    active: float  # the share of all units above zero
    count: int  # of all units
    units: Tensor  # (k,) their numbers, strongest first
    activations: Tensor  # (k,)
    lengths: Tensor  # (k,) of what each adds to the token
    maps: Tensor  # (k, rows, cols) their activations over the patches


class Ledger(NamedTuple):
    """Step 9. A label's logit as a sum, exactly, the last norm's deviation taken as it was."""

    label: int
    embedding: float  # patches, positions, prefix tokens
    heads: Tensor  # (L, h)
    biases: Tensor  # (L,) of attention's projections
    mlps: Tensor  # (L,)
    constant: float  # the biases of the last norm and of the head
    logit: float

    @property
    def total(self) -> float:
        parts = (self.heads.sum(), self.biases.sum(), self.mlps.sum())
        return self.embedding + self.constant + sum(map(float, parts))


class Answer(NamedTuple):
    """Step 10. logit = products.sum() + bias. A distilled model has two heads, and their mean
    answers: G = 2, otherwise G = 1."""

    label: int
    features: Tensor  # (G, D)
    weights: Tensor  # (G, D)
    products: Tensor  # (G, D), features * weights / G
    bias: float
    logit: float


class Inside:
    """One picture's way through the model, step by step."""

    @torch.inference_mode()
    def __init__(
        self,
        model: VisionTransformer,
        pixels: Tensor,
        preprocess: Preprocess | None = None,
        labels: Sequence[str] = (),
    ):
        self.model, self.config = model, model.config
        self.images = pixels  # (1, C, H, W), where the model is
        self.preprocess = preprocess
        self.labels = list(labels) or [str(i) for i in range(self.config.num_classes)]
        self.grid = model.grid_of(pixels)
        x = model.embed(pixels)  # (1, N, D)
        stream = [x]
        for block in model.blocks:
            x = x + block.ls1(block.attn(block.norm1(x)))
            stream.append(x)
            x = x + block.ls2(block.mlp(block.norm2(x)))
            stream.append(x)
        self.stream = torch.cat(stream).cpu()  # (2 L + 1, N, D)
        self.logits = model.forward_head(x)[0].cpu()  # (classes,); without a head the features (D,)
        self.layers, self.N = len(model.blocks), x.shape[1]

    @property
    def nbytes(self) -> int:
        return self.stream.nbytes + self.logits.nbytes + self.images.nbytes

    def token(self, query: Query = None) -> int:
        """The number of a token."""
        if query is not None:
            return token_of(query, self.grid, self.config)
        rows, cols = self.grid
        middle = (rows // 2, cols // 2)
        return 0 if self.config.pool == "token" else token_of(middle, self.grid, self.config)

    def label_index(self, label: int | str | None = None) -> int:
        """The class of a label: its number, its name, or None: the predicted."""
        if not self.config.num_classes:
            raise ValueError(
                "This model has no label head, so steps 9 and 10 do not exist for it; "
                "choose a model with labels."
            )
        return int(self.logits.argmax()) if label is None else find_label(self.labels, label)

    def entering(self, layer: int) -> Tensor:
        """What a block gets (N, D)."""
        return self.stream[2 * layer].to(self.images.device)

    def block(self, layer: int) -> tuple[int, Block]:
        layer = index_of("layer", layer, self.layers)
        return layer, self.model.blocks[layer]

    # 1 Pixels

    def pixels(self) -> Pixels:
        normalised = self.images[0].cpu()
        if self.preprocess is None:
            raise ValueError("How these pixels were normalised is not known; give a preprocess.")
        mean, std = self.preprocess.mean, self.preprocess.std
        scale, shift = (normalised.new_tensor(x)[:, None, None] for x in (std, mean))
        return Pixels(255 * (normalised * scale + shift), normalised, mean, std)

    # 2 Patches

    @torch.inference_mode()
    def patch(self, query: Query = None) -> Patch:
        conv = self.model.patch_embed
        unfold = UnfoldPatchEmbed(self.config).to(self.images).load_from_conv(conv)
        a, b = conv(self.images)[0], unfold(self.images)[0]  # (n, D)
        number = self.patch_number(query)
        difference = float((a - b).abs().max())
        return on_cpu(Patch(self.patch_pixels(number), a[number], b[number], difference))

    @torch.inference_mode()
    def patch_products(self, channel: int, query: Query = None) -> PatchProducts:
        """One of the D numbers of a patch, number `channel`, opened."""
        proj = self.model.patch_embed.proj
        channel = index_of("channel", channel, self.config.embed_dim)
        bias = 0.0 if proj.bias is None else float(proj.bias[channel])
        pixels = self.patch_pixels(self.patch_number(query))
        return on_cpu(PatchProducts(pixels, proj.weight[channel], bias))

    def patch_number(self, query: Query) -> int:
        """Patches count from 0 here; a token that is no patch stands for the middle one."""
        number = self.token(query) - self.config.prefix_tokens
        rows, cols = self.grid
        return number if number >= 0 else rows // 2 * cols + cols // 2

    def patch_pixels(self, number: int) -> Tensor:
        (row, col), (p, q) = divmod(number, self.grid[1]), self.config.patch_size
        return self.images[0, :, row * p : row * p + p, col * q : col * q + q]

    # 3 Class token, positions

    @torch.inference_mode()
    def embedding(self) -> Embedding:
        model, P = self.model, self.config.prefix_tokens
        prefix_positions, positions = model.positions(self.grid)
        prefix = torch.empty(0, self.config.embed_dim).to(self.images)
        if P:
            tokens = torch.cat([getattr(model, name)[0] for name in self.config.prefix])
            prefix = tokens + (prefix_positions[0] if torch.is_tensor(prefix_positions) else 0)
        return on_cpu(Embedding(model.patch_embed(self.images)[0], positions[0], prefix))

    @torch.inference_mode()
    def shuffle(self, seed: int = 0) -> Shuffled:
        """Does the order of the patches matter? Not if each takes its position along."""
        generator = torch.Generator().manual_seed(whole("seed", seed, 0, 2**63 - 1))
        order = torch.randperm(self.grid[0] * self.grid[1], generator=generator)
        there, patch = order.to(self.images.device), self.config.patch_size
        kept = self.model(self.images, kept_patches=there[None])[0]
        columns = F.unfold(self.images, patch, stride=patch)[:, :, there]  # (1, C p q, n)
        other = F.fold(columns, self.images.shape[2:], patch, stride=patch)
        return on_cpu(Shuffled(order, self.logits, kept, self.model(other)[0]))

    # 4 LayerNorm

    @torch.inference_mode()
    def layer_norm(self, layer: int = 0, query: Query = None) -> Normalised:
        """The first norm of a block: what stands before attention."""
        layer, block = self.block(layer)
        x = self.entering(layer)[self.token(query)]
        mean, deviation = x.mean(), (x.var(correction=0) + block.norm1.eps).sqrt()
        found = (x, (x - mean) / deviation, block.norm1(x), float(mean), float(deviation))
        return on_cpu(Normalised(*found))

    def lengths(self) -> Tensor:
        """The length of every token: as it enters each block, and after the last: (L + 1, N)."""
        return self.stream[::2].norm(dim=-1)

    def marked(self, times: float = MARKED) -> Tensor:
        """Which tokens are longer than so many times the median of their layer: (L + 1, N)."""
        lengths = self.lengths()
        return lengths > times * lengths.median(dim=-1, keepdim=True).values

    # 5 Queries, keys, values; 6 softmax

    @torch.inference_mode()
    def attention(
        self, layer: int = -1, head: int = 0, query: Query = None, *, temperature: float = 1.0
    ) -> Attention:
        layer, block = self.block(layer)
        head = index_of("head", head, self.config.heads)
        if not 0 < temperature < math.inf:
            raise ValueError(f"temperature is {shown(temperature)}; use a number above 0.")
        q, k, v = self.qkv(block, self.entering(layer), slice(head, head + 1))
        token = self.token(query)
        return on_cpu(Attention(q[0, token], k[0], v[0], float(temperature)))

    def qkv(self, block: Block, x: Tensor, heads: slice = slice(None)) -> tuple[Tensor, ...]:
        """Queries, keys and values of some heads (heads, N, d), from what the block gets (N, D)."""
        layer, parts = block.attn.qkv, (3, self.config.heads, -1)
        weight = layer.weight.unflatten(0, parts)[:, heads].flatten(0, 2)
        bias = None if layer.bias is None else layer.bias.unflatten(0, parts)[:, heads].flatten()
        found = F.linear(block.norm1(x), weight, bias).unflatten(-1, (3, -1, self.head_dim))
        return found.permute(1, 2, 0, 3).unbind(0)

    @property
    def head_dim(self) -> int:
        return self.config.embed_dim // self.config.heads

    # 7 Weighted sum, heads

    @torch.inference_mode()
    def heads(self, layer: int = -1, query: Query = None) -> Heads:
        layer, block = self.block(layer)
        q, k, v = self.qkv(block, self.entering(layer))
        token = self.token(query)
        A = attention_weights(q[:, token, None], k)[:, 0]  # (h, N)
        seen = (A[:, None] @ v)[:, 0]  # (h, d)
        written, bias = written_by(block, seen)
        return on_cpu(Heads(A, seen, written, bias, written.sum(dim=0) + bias))

    # 8 Residual and MLP

    def residual(self, query: Query = None) -> Residual:
        token = self.stream[:, self.token(query)]  # (2 L + 1, D)
        x, y, z = token[0:-1:2], token[1::2], token[2::2]  # before, after attention, after the MLP
        attention, mlp = y - x, z - y
        pairs = ((x, attention), (y, mlp), (attention, mlp))
        lengths = torch.stack([x, attention, mlp], dim=1).norm(dim=-1)
        return Residual(lengths, torch.stack([cosine(a, b) for a, b in pairs], dim=1))

    @torch.inference_mode()
    def units(self, layer: int = -1, query: Query = None, count: int = 5) -> Units:
        """The `count` units whose part in the token is longest."""
        layer, block = self.block(layer)
        count = min(whole("count", count, 1), self.config.mlp_dim)
        x = block.norm2(self.stream[2 * layer + 1].to(self.images.device))  # (N, D)
        before = block.mlp.fc1(x[self.token(query)])  # (units,)
        active = float((before > 0).double().mean())
        activations = block.mlp.activation(before)  # perhaps in the place of `before`
        lengths = activations.abs() * block.ls2(block.mlp.fc2.weight.T).norm(dim=-1)
        chosen = lengths.topk(count)
        fc1, at = block.mlp.fc1, chosen.indices
        maps = block.mlp.activation(F.linear(x, fc1.weight[at], fc1.bias[at]))  # (N, k)
        maps = maps[self.config.prefix_tokens :].T.unflatten(-1, self.grid)
        found = (active, len(before), at, activations[at], chosen.values, maps)
        return on_cpu(Units(*found))

    # 9 Layer by layer

    @torch.inference_mode()
    def lens(self) -> Tensor:
        """What the head would answer before the first block and after each one: (L + 1, classes).

        Early layers were never trained to answer: a late rise is no proof that the answer was found
        there."""
        self.label_index()
        tokens = self.stream[::2].to(self.images.device)
        return torch.cat([self.model.forward_head(x[None]) for x in tokens]).cpu()

    @torch.inference_mode()
    def random_lens(self, seed: int = 0) -> Tensor:
        """The same for blocks with random weights, between the same embedding and head."""
        self.label_index()
        generator = torch.Generator().manual_seed(whole("seed", seed, 0, 2**63 - 1))
        x = self.entering(0)[None]
        logits = [self.model.forward_head(x)]
        for block in self.model.blocks:
            block = copy.deepcopy(block)  # one at a time: the model is never there twice
            randomise(block, generator)
            x = block(x)
            logits.append(self.model.forward_head(x))
        return torch.cat(logits).cpu()

    def ledger(self, label: int | str | None = None) -> Ledger:
        """What each head and each MLP adds to a label's logit.

        The last norm divides by a deviation that depends on everything before it. With that one
        number as it was in this pass, the logit is a sum over all that was ever added to the stream.
        """
        label = self.label_index(label)
        u, constant = self.direction(label)  # (G, D)
        a, tokens = self.readout_weights, readout_tokens(self.config)
        x = torch.einsum("gt,ltd->lgd", a, self.stream[:, tokens].double())  # (2 L + 1, G, D)
        in_stream = (x * u).sum(dim=(1, 2))  # (2 L + 1,)
        written, biases = self.written
        return Ledger(
            label,
            float(in_stream[0]),
            torch.einsum("lghd,gd->lh", written, u),
            torch.einsum("lgd,gd->l", biases, u),
            in_stream[2::2] - in_stream[1::2],
            constant,
            float(self.logits[label]),
        )

    def direction(self, label: int) -> tuple[Tensor, float]:
        """Where in the stream a label's logit points (G, D), and its constant; in float64."""
        norm, directions, constant = self.last_norm, [], 0.0
        for head in self.answering_heads:
            w = head.weight[label].double().cpu() / len(self.answering_heads)
            constant += float(head.bias[label].double()) / len(self.answering_heads)
            if isinstance(norm, nn.LayerNorm):
                constant += float(w @ norm.bias.double().cpu())
                w = w * norm.weight.double().cpu()
                w = w - w.mean()  # the norm takes the mean away; so may the direction
            directions.append(w)
        return torch.stack(directions), constant

    @property
    def answering_heads(self) -> list[nn.Linear]:
        model = self.model
        return [model.head, model.head_dist] if self.config.distilled else [model.head]

    @property
    def pools_first(self) -> bool:
        """Whether the last norm comes after pooling."""
        return self.config.last_norm == "pooled" and not self.config.distilled

    @property
    def last_norm(self) -> nn.Module:
        return self.model.fc_norm if self.pools_first else self.model.norm

    @cached_property
    def readout_weights(self) -> Tensor:
        """How much of each read-out token is in the features, divided by the last norm's deviation:
        (G, T) in float64. Before that norm's weight, the features are these times the tokens."""
        x = self.stream[-1, readout_tokens(self.config)].double()  # (T, D)
        T = len(x)
        if self.config.distilled:
            weights = torch.eye(2, dtype=x.dtype)
        else:
            weights = torch.full((1, T), 1 / T, dtype=x.dtype)
        if not isinstance(self.last_norm, nn.LayerNorm):
            return weights
        normed = weights @ x if self.pools_first else x  # (1, D), or (T, D)
        deviation = (normed.var(dim=-1, correction=0) + self.last_norm.eps).sqrt()
        return weights / deviation

    @cached_property
    @torch.inference_mode()
    def written(self) -> tuple[Tensor, Tensor]:
        """What each head adds to the read-out (L, G, h, D), and the projections' biases (L, G, D)."""
        tokens, found = readout_tokens(self.config), []
        a = self.readout_weights.to(self.images)  # (G, T)
        for layer, block in enumerate(self.model.blocks):
            q, k, v = self.qkv(block, self.entering(layer))
            A = attention_weights(q[:, tokens], k)  # (h, T, N)
            seen = torch.einsum("gt,htn->ghn", a, A).transpose(0, 1) @ v  # (h, G, d)
            parts = [written_by(block, one) for one in seen.unbind(1)]  # G of (h, D) and (D,)
            heads = torch.stack([heads for heads, _ in parts])
            found.append((heads, a.sum(dim=1, keepdim=True) * parts[0][1]))
        heads, biases = zip(*found, strict=True)
        return torch.stack(heads).double().cpu(), torch.stack(biases).double().cpu()

    # 10 The answer

    @torch.inference_mode()
    def answer(self, label: int | str | None = None) -> Answer:
        label = self.label_index(label)
        x = self.model.norm(self.entering(self.layers)[readout_tokens(self.config)])  # (T, D)
        if not self.config.distilled:
            x = self.model.fc_norm(x.mean(dim=0, keepdim=True))  # (1, D)
        heads = self.answering_heads
        weights = torch.stack([head.weight[label] for head in heads])
        bias = sum(float(head.bias[label]) for head in heads) / len(heads)
        logit = float(self.logits[label])
        return on_cpu(Answer(label, x, weights, x * weights / len(heads), bias, logit))


# Of a model alone


@torch.inference_mode()
def filters(model: VisionTransformer, count: int = 28) -> Filters:
    """The directions in which the patch embedding's D kernels differ most."""
    kernels = model.patch_embed.proj.weight.detach().double().cpu()  # (D, C, p, q)
    flat = kernels.flatten(1)
    _, sizes, components = torch.linalg.svd(flat - flat.mean(dim=0), full_matrices=False)
    count = min(whole("count", count, 1), len(sizes))
    variance = sizes.square() / sizes.square().sum()
    components = components[:count].unflatten(1, kernels.shape[1:])
    return Filters(components.float(), variance[:count].float())


@torch.inference_mode()
def position_similarity(
    model: VisionTransformer, grid: tuple[int, int] | None = None, centred: bool = False
) -> Tensor:
    """The cosine between the positions of all patches (n, n); `centred`: their mean taken away."""
    positions = model.positions(grid or model.config.grid)[1][0].detach().cpu()  # (n, D)
    if centred:
        positions = positions - positions.mean(dim=0)
    positions = F.normalize(positions, dim=-1)
    return positions @ positions.T


# How it is done


def written_by(block: Block, seen: Tensor) -> tuple[Tensor, Tensor]:
    """What each head adds to a token that saw this (h, d): (h, D), and the projection's bias (D,)."""
    proj = block.attn.proj
    written = torch.einsum("hd,ohd->ho", seen, proj.weight.unflatten(1, seen.shape))
    return block.ls1(written), block.ls1(proj.bias)


def cosine(a: Tensor, b: Tensor) -> Tensor:
    return F.cosine_similarity(a, b, dim=-1)


def on_cpu(found: tuple) -> tuple:
    return type(found)(*(x.cpu() if isinstance(x, Tensor) else x for x in found))
