"""What training starts from: random weights, weights like those of trained ViTs, or a trained model."""

import math
from dataclasses import replace

import torch
from torch import Tensor, nn

from vit_demo.checkpoints import Checkpoint
from vit_demo.model import VisionTransformer, ViTConfig, resample_positions
from vit_demo.training.augment import seed_of
from vit_demo.training.config import TrainConfig


def first_model(
    config: TrainConfig, start: Checkpoint | None, class_names: list[str]
) -> VisionTransformer:
    """A new model, or a trained one; it keeps its head where it knows the same classes."""
    classes = len(class_names)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed_of(config.seed))
        if start is not None:
            keep_head = list(start.labels) == list(class_names)
            grown = deeper(start.model, config.depth) if config.depth else start.model
            return refitted(grown, classes, config.image_size, keep_head)
        model = VisionTransformer(
            ViTConfig(
                image_size=config.image_size,
                patch_size=config.patch_size,
                channels=config.channels,
                embed_dim=config.embed_dim,
                depth=config.depth,
                heads=config.heads,
                num_classes=classes,
                dropout=config.dropout,
                attention_dropout=config.attention_dropout,
            )
        )
        if config.first_weights == "mimetic":
            make_mimetic(model)
        return model


def refitted(
    trained: VisionTransformer, classes: int, image_size: int | None, keep_head: bool
) -> VisionTransformer:
    """The same weights, with positions for another image size, and mostly a head for other classes."""
    old = trained.config
    model = VisionTransformer(
        replace(old, num_classes=classes, image_size=image_size or old.image_size)
    )
    weights = trained.state_dict()
    if not keep_head:
        weights = {name: w for name, w in weights.items() if not name.startswith("head")}
    P = 0 if old.no_embed_class else old.prefix_tokens
    prefix, patches = weights["pos_embed"][:, :P], weights["pos_embed"][:, P:]
    patches = resample_positions(patches, old.grid, model.config.grid)
    weights["pos_embed"] = torch.cat([prefix, patches], dim=1)
    model.load_state_dict(weights, strict=False)
    return model


@torch.no_grad()
def deeper(trained: VisionTransformer, depth: int) -> VisionTransformer:
    """The same function with more blocks: between the trained ones stand copies that add nothing yet.

    A block adds to its tokens; a copy whose last matrices are zero adds zero until it has learnt what
    to add (Chen, Goodfellow and Shlens 2016: Net2Net).
    """
    old = trained.config.depth
    if depth < old:
        raise ValueError(
            f"--depth is {depth}, but the model has {old} blocks already; use {old} or more."
        )
    model = VisionTransformer(replace(trained.config, depth=depth))
    rest = {n: w for n, w in trained.state_dict().items() if not n.startswith("blocks.")}
    model.load_state_dict(rest, strict=False)
    sources = [i * old // depth for i in range(depth)]  # 6 blocks to 9: 0 0 1 2 2 3 4 4 5
    for i, source in enumerate(sources):
        block = model.blocks[i]
        block.load_state_dict(trained.blocks[source].state_dict())
        if i and sources[i - 1] == source:
            for last in (block.attn.proj, block.mlp.fc2):
                nn.init.zeros_(last.weight)
                nn.init.zeros_(last.bias)
    return model


@torch.no_grad()
def make_mimetic(model: VisionTransformer) -> None:
    """First weights that look like those of trained ViTs (Trockman and Kolter 2023).

    There, queries and keys agree (W_q^T W_k is near the identity: like looks at like), projection
    and values nearly undo the token (W_proj W_v is near minus the identity), and positions are
    smooth. What a model starts with it need not learn from too few pictures.
    """
    shape = model.config
    D, d = shape.embed_dim, shape.embed_dim // shape.heads

    def factors(noise: float, identity: float) -> tuple[Tensor, Tensor]:
        """Two matrices whose product is the identity (times a factor) plus noise."""
        product = noise * torch.randn(D, D) / D**0.5 + identity * torch.eye(D)
        U, S, V = torch.linalg.svd(product)
        return U * S.sqrt(), S.sqrt()[:, None] * V

    for block in model.blocks:
        q, k, v = block.attn.qkv.weight.chunk(3)  # each (D, D), the rows of one head after another
        for head in range(shape.heads):
            own = slice(head * d, (head + 1) * d)
            left, right = factors(0.7, 0.7)
            q[own], k[own] = left.T[:d], right[:d]  # the d strongest directions
        left, right = factors(0.4, -0.4)
        block.attn.proj.weight.copy_(left)
        v.copy_(right)
    patch_embed = model.patch_embed.proj.weight
    nn.init.normal_(patch_embed, std=patch_embed[0].numel() ** -0.5)
    P = 0 if shape.no_embed_class else shape.prefix_tokens
    model.pos_embed[:, P:] = 0.5 * sines(*shape.grid, D)


def sines(rows: int, cols: int, D: int) -> Tensor:
    """Positions (rows * cols, D): sines and cosines of column and row, ever slower."""
    frequencies = 10000 ** -(torch.arange(math.ceil(D / 4)) / (D / 4))
    row, col = torch.meshgrid(torch.arange(rows), torch.arange(cols), indexing="ij")
    angles = [axis.flatten()[:, None] * frequencies for axis in (col, row)]
    return torch.cat([wave(a) for a in angles for wave in (torch.sin, torch.cos)], dim=1)[:, :D]
