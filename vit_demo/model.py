"""The Vision Transformer of "An Image is Worth 16x16 Words" (Dosovitskiy et al. 2021), line by line.

    z0 = [class; x1 E; x2 E; ...; xN E] + E_pos        patches, class token, positions      (eq. 1)
    z' = MSA(LN(z)) + z                                attention mixes the tokens           (eq. 2)
    z  = MLP(LN(z')) + z'                              the MLP works on each token alone    (eq. 3)
    y  = head(LN(z_class))                             one token answers for the picture    (eq. 4)

The names of the parameters are timm's, so that a timm state dict loads as it is. The options of
`ViTConfig` are those that timm's plain ViTs need: DeiT, DeiT-III, CLIP towers, registers, DINO.

In the comments on shapes: B pictures, C channels, N tokens (P prefix tokens, then the patches row
by row), D the width of a token, h heads of d = D / h numbers each.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from numbers import Integral

import torch
import torch.nn.functional as F
from torch import Tensor, nn

# A function in place of softmax(q k^T / sqrt(d)) v: queries, keys, values, each (B, h, N, d), to
# what each token saw (B, h, N, d). Recording attention, or switching heads off, is such a function.
Attend = Callable[[Tensor, Tensor, Tensor], Tensor]

ALL = slice(None)  # of the tokens


def gelu(x: Tensor, approximate: str = "none") -> Tensor:
    """GELU; in inference mode in the place of x, which is the widest tensor of the whole model."""
    in_place = torch.is_inference_mode_enabled() and x.is_inference()
    return (torch.ops.aten.gelu_ if in_place else F.gelu)(x, approximate=approximate)


ACTIVATIONS = {
    "gelu": gelu,
    "gelu_tanh": lambda x: gelu(x, "tanh"),
    "quick_gelu": lambda x: x * torch.sigmoid(1.702 * x),  # what the first CLIPs were trained with
}


@dataclass(frozen=True)
class ViTConfig:
    """The shape of a ViT. The defaults are ViT-B/16 at 384 px with ImageNet's 1000 classes."""

    image_size: int | tuple[int, int] = 384  # height, width; one number means a square
    patch_size: int | tuple[int, int] = 16
    channels: int = 3
    embed_dim: int = 768
    depth: int = 12
    heads: int = 12
    mlp_dim: int | None = None  # None: four times embed_dim
    num_classes: int = 1000  # 0: no head, the pooled features come out
    class_token: bool = True
    distilled: bool = False  # DeiT's second token, with a second head
    registers: int = 0  # extra tokens that belong to no patch
    pool: str = "token"  # "token": the class token answers; "avg": the mean of the patches
    no_embed_class: bool = False  # positions for the patches only, not for the prefix tokens
    pre_norm: bool = False  # CLIP: a norm before the first block, and no bias on the patches
    layer_scale: float | None = None  # None: no layer scale; a number: its value at the start
    qkv_bias: bool = True
    activation: str = "gelu"  # one of ACTIVATIONS
    last_norm: str = "tokens"  # "tokens": before pooling; "pooled": after it; "none"
    norm_eps: float = 1e-6
    dropout: float = 0.0  # in training: after the positions, the projection and the MLP's linears
    attention_dropout: float = 0.0  # in training: on the attention weights

    def __post_init__(self):
        complete_and_check(self)  # at the end of this file

    @property
    def grid(self) -> tuple[int, int]:
        """Rows and columns of patches at the model's own image size."""
        return patch_grid(self.image_size, self.patch_size)

    @property
    def prefix(self) -> dict[str, int]:
        """The tokens that stand before the patches, in order, with their number."""
        counts = (self.class_token, self.distilled, self.registers)
        names = ("cls_token", "dist_token", "reg_token")
        return {name: int(count) for name, count in zip(names, counts, strict=True) if count}

    @property
    def prefix_tokens(self) -> int:
        return sum(self.prefix.values())


class PatchEmbed(nn.Module):
    """Cut the picture into patches and project each one: a convolution whose stride is its size."""

    def __init__(self, config: ViTConfig):
        super().__init__()
        D, patch, bias = config.embed_dim, config.patch_size, not config.pre_norm
        self.proj = nn.Conv2d(config.channels, D, patch, stride=patch, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        return self.proj(x).flatten(2).transpose(1, 2)  # (B, C, H, W) -> (B, rows * cols, D)


class UnfoldPatchEmbed(nn.Module):
    """The same thing in two steps one can see: unfold each patch into a vector, then one linear map."""

    def __init__(self, config: ViTConfig):
        super().__init__()
        self.patch_size = config.patch_size
        pixels = config.channels * config.patch_size[0] * config.patch_size[1]
        self.proj = nn.Linear(pixels, config.embed_dim, bias=not config.pre_norm)

    def forward(self, x: Tensor) -> Tensor:
        patches = F.unfold(x, self.patch_size, stride=self.patch_size)  # (B, C p q, rows * cols)
        return self.proj(patches.transpose(1, 2))  # (B, rows * cols, D)

    def load_from_conv(self, conv: PatchEmbed) -> "UnfoldPatchEmbed":
        """Take over a convolution's weights: each kernel, laid flat, is one row of the matrix."""
        flat = {name: w.flatten(min(1, w.ndim - 1)) for name, w in conv.state_dict().items()}
        self.load_state_dict(flat)
        return self


class Attention(nn.Module):
    """Multi-head self-attention: every token attends to every token, h times in parallel."""

    def __init__(self, config: ViTConfig):
        super().__init__()
        self.heads = config.heads
        self.fused = True  # False: softmax(q k^T / sqrt(d)) v written out, with the same result
        self.qkv = nn.Linear(config.embed_dim, 3 * config.embed_dim, bias=config.qkv_bias)
        self.attn_drop = nn.Dropout(config.attention_dropout)
        self.proj = nn.Linear(config.embed_dim, config.embed_dim)
        self.proj_drop = nn.Dropout(config.dropout)

    def forward(self, x: Tensor, attend: Attend | None = None, wanted: slice = ALL) -> Tensor:
        """What the tokens (B, N, D) see; of the `wanted` ones."""
        B, N, D = x.shape
        d = D // self.heads
        qkv = self.qkv(x).reshape(B, N, 3, self.heads, d)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)  # each (B, h, N, d)
        if attend is not None:
            x = attend(q, k, v)[:, :, wanted]  # (B, h, N, d)
        elif self.fused:
            dropout = self.attn_drop.p if self.training else 0.0
            x = F.scaled_dot_product_attention(q[:, :, wanted], k, v, dropout_p=dropout)
        else:
            A = ((q[:, :, wanted] * d**-0.5) @ k.transpose(-2, -1)).softmax(dim=-1)  # (B, h, N, N)
            x = self.attn_drop(A) @ v  # (B, h, N, d)
        return self.proj_drop(self.proj(x.transpose(1, 2).flatten(2)))


def attention_weights(q: Tensor, k: Tensor) -> Tensor:
    """softmax(q k^T / sqrt(d)) (..., N, N): row = the token that asks, column = the one it looks at.

    For an `attend` that needs the weights themselves; the same line as in `Attention.forward`.
    """
    return ((q * q.shape[-1] ** -0.5) @ k.transpose(-2, -1)).softmax(dim=-1)


class MLP(nn.Module):
    """Two linear maps with a nonlinearity between them, for each token alone."""

    def __init__(self, config: ViTConfig):
        super().__init__()
        self.fc1 = nn.Linear(config.embed_dim, config.mlp_dim)
        self.activation = ACTIVATIONS[config.activation]
        self.drop1 = nn.Dropout(config.dropout)
        self.fc2 = nn.Linear(config.mlp_dim, config.embed_dim)
        self.drop2 = nn.Dropout(config.dropout)

    def forward(self, x: Tensor) -> Tensor:
        x = self.drop1(self.activation(self.fc1(x)))  # (B, N, mlp_dim)
        return self.drop2(self.fc2(x))  # (B, N, D)


class LayerScale(nn.Module):
    """A learned factor for each channel of a branch; small at the start, it calms deep models."""

    def __init__(self, config: ViTConfig):
        super().__init__()
        self.gamma = nn.Parameter(torch.full((config.embed_dim,), float(config.layer_scale)))

    def forward(self, x: Tensor) -> Tensor:
        return x * self.gamma


class Block(nn.Module):
    """One encoder layer, pre-norm: normalise, then attend or transform, then add."""

    def __init__(self, config: ViTConfig):
        super().__init__()
        scale = nn.Identity if config.layer_scale is None else LayerScale
        self.norm1 = nn.LayerNorm(config.embed_dim, eps=config.norm_eps)
        self.attn = Attention(config)
        self.ls1 = scale(config)
        self.norm2 = nn.LayerNorm(config.embed_dim, eps=config.norm_eps)
        self.mlp = MLP(config)
        self.ls2 = scale(config)

    def forward(self, x: Tensor, attend: Attend | None = None, wanted: slice = ALL) -> Tensor:
        x = x[:, wanted] + self.ls1(self.attn(self.norm1(x), attend, wanted))  # (eq. 2)
        return x + self.ls2(self.mlp(self.norm2(x)))  # (eq. 3)


class VisionTransformer(nn.Module):
    def __init__(self, config: ViTConfig | None = None):
        super().__init__()
        self.config = config = config or ViTConfig()
        D, (rows, cols) = config.embed_dim, config.grid
        positions = rows * cols + (0 if config.no_embed_class else config.prefix_tokens)

        def norm(wanted: bool) -> nn.Module:
            return nn.LayerNorm(D, eps=config.norm_eps) if wanted else nn.Identity()

        def head() -> nn.Module:
            return nn.Linear(D, config.num_classes) if config.num_classes else nn.Identity()

        self.patch_embed = PatchEmbed(config)
        if config.class_token:
            self.cls_token = nn.Parameter(torch.zeros(1, 1, D))
        if config.distilled:
            self.dist_token = nn.Parameter(torch.zeros(1, 1, D))
        if config.registers:
            self.reg_token = nn.Parameter(torch.zeros(1, config.registers, D))
        self.pos_embed = nn.Parameter(torch.zeros(1, positions, D))
        self.pos_drop = nn.Dropout(config.dropout)
        self.norm_pre = norm(config.pre_norm)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.depth))
        self.norm = norm(config.last_norm == "tokens")
        self.fc_norm = norm(config.last_norm == "pooled")
        self.head = head()
        if config.distilled:
            self.head_dist = head()
        if not self.pos_embed.is_meta:  # without memory yet: weights will be put in
            self.init_weights()

    def init_weights(self) -> None:
        """The usual start: small normal weights, zero biases, positions that are almost equal."""
        for name, parameter in self.named_parameters():
            if parameter.ndim > 1:
                nn.init.trunc_normal_(parameter, std=0.02)
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)

    def forward(
        self, images: Tensor, attend: Attend | None = None, kept_patches: Tensor | None = None
    ) -> Tensor:
        """Logits (B, classes) of pictures (B, C, H, W). `attend` does the attention of each layer.

        `kept_patches` (B, K) numbers the patches that stay; the others never reach a block. Of the
        last block only those tokens are computed that the answer is taken from.
        """
        x = self.embed(images, kept_patches)  # (B, N, D)
        for block, wanted in self.layers():
            x = block(x, attend, wanted)  # (B, N, D)
        return self.forward_head(x)

    def layers(self) -> Iterator[tuple[Block, slice]]:
        """The blocks, and whose results are wanted: all tokens', but of the last block only those that
        the answer is taken from, which are the class (and distillation) token, or all for their mean."""
        last = ALL if self.config.pool == "avg" else readout_tokens(self.config)
        for layer, block in enumerate(self.blocks, start=1):
            yield block, ALL if layer < len(self.blocks) else last

    def embed(self, images: Tensor, kept_patches: Tensor | None = None) -> Tensor:
        """Patches, prefix tokens and positions: what enters the first block (B, N, D) (eq. 1)."""
        prefix_positions, patch_positions = self.positions(self.grid_of(images))
        x = self.patch_embed(images) + patch_positions  # (B, rows * cols, D)
        if kept_patches is not None:
            x = x.gather(1, kept_patches[:, :, None].expand(-1, -1, x.shape[-1]))  # (B, K, D)
        if self.config.prefix:
            prefix = torch.cat([getattr(self, name) for name in self.config.prefix], dim=1)
            prefix = prefix + prefix_positions  # (1, P, D)
            x = torch.cat([prefix.expand(len(x), -1, -1), x], dim=1)  # (B, N, D)
        return self.norm_pre(self.pos_drop(x))

    def forward_head(self, x: Tensor) -> Tensor:
        """Logits (B, classes) from what the last block made of the tokens (B, N, D) (eq. 4)."""
        x = self.norm(x)
        if self.config.distilled:
            return (self.head(x[:, 0]) + self.head_dist(x[:, 1])) / 2
        P = self.config.prefix_tokens
        x = x[:, P:].mean(dim=1) if self.config.pool == "avg" else x[:, 0]  # (B, D)
        return self.head(self.fc_norm(x))  # (B, classes), or (B, D) without a head

    def positions(self, grid: tuple[int, int]) -> tuple[Tensor | float, Tensor]:
        """Positions of the prefix tokens and of the patches, resampled when the grid is another."""
        P = 0 if self.config.no_embed_class else self.config.prefix_tokens
        prefix, patches = (self.pos_embed[:, :P] if P else 0.0), self.pos_embed[:, P:]
        return prefix, resample_positions(patches, self.config.grid, grid)

    def grid_of(self, images: Tensor) -> tuple[int, int]:
        """Rows and columns of patches in these pictures; an error that helps if they do not fit."""
        C, shape = self.config.channels, tuple(images.shape)
        require(
            len(shape) == 4 and shape[1] == C,
            f"The model takes pictures of shape (batch, {C}, height, width), not {shape}; "
            f"convert them to {C} channels and add a batch axis.",
        )
        return patch_grid(shape[2:], self.config.patch_size)


def readout_tokens(config: ViTConfig) -> slice:
    """The tokens whose mean is the answer: class, class and distillation, or all patches."""
    if config.pool == "avg":
        return slice(config.prefix_tokens, None)
    return slice(0, 2 if config.distilled else 1)


def resample_positions(positions: Tensor, old_grid: tuple, new_grid: tuple) -> Tensor:
    """Stretch patch positions (1, rows * cols, D) to another grid, as timm does it."""
    if tuple(old_grid) == tuple(new_grid):
        return positions
    image = positions.float().reshape(1, *old_grid, -1).permute(0, 3, 1, 2)  # (1, D, rows, cols)
    image = F.interpolate(image, size=tuple(new_grid), mode="bicubic", antialias=True)
    return image.permute(0, 2, 3, 1).flatten(1, 2).to(positions.dtype)


def patch_grid(size: tuple[int, int], patch: tuple[int, int]) -> tuple[int, int]:
    """Rows and columns of patches in a picture of this height and width."""
    (H, W), (p, q) = size, patch
    near = f"{max(1, H // max(1, p)) * p}x{max(1, W // max(1, q)) * q}"
    require(
        min(H, W, p, q) >= 1 and H % p == 0 and W % q == 0,
        f"{H}x{W} pixels cannot be cut into patches of {p}x{q}; use a size like {near}.",
    )
    return H // p, W // q


# Is a config possible?

CHOICES = {
    "pool": ("token", "avg"),
    "activation": tuple(ACTIVATIONS),
    "last_norm": ("tokens", "pooled", "none"),
}
LEAST = {"channels": 1, "embed_dim": 1, "depth": 1, "heads": 1, "mlp_dim": 1}
LEAST |= {"num_classes": 0, "registers": 0}


def complete_and_check(config: ViTConfig) -> None:
    """Fill in what follows from the rest, and refuse what no model can be."""
    for name in ("image_size", "patch_size"):
        size = getattr(config, name)
        sides = tuple(size) if isinstance(size, Iterable) else (size, size)
        fine = len(sides) == 2 and all(isinstance(side, Integral) for side in sides)
        require(fine, f"{name} is {size!r:.60}; use a whole number, or two: height and width.")
        object.__setattr__(config, name, tuple(map(int, sides)))
    for name, least in LEAST.items():
        value = getattr(config, name)
        if name == "mlp_dim" and value is None:
            value = 4 * config.embed_dim
        fine = isinstance(value, Integral) and not isinstance(value, bool) and value >= least
        require(fine, f"{name} is {value!r:.60}; use a whole number of at least {least}.")
        object.__setattr__(config, name, int(value))  # numpy's integers become Python's
    for name, allowed in CHOICES.items():
        value = getattr(config, name)
        require(value in allowed, f"{name} is {value!r}; use one of {', '.join(allowed)}.")
    for name in ("dropout", "attention_dropout"):
        rate = getattr(config, name)
        require(0 <= rate < 1, f"{name} is {rate}; use a share from 0 to below 1.")
    patch_grid(config.image_size, config.patch_size)
    shape = f"embed_dim {config.embed_dim}, heads {config.heads}"
    require(config.embed_dim % config.heads == 0, f"{shape}: use a width that the heads divide.")
    require(config.class_token or config.pool == "avg", 'No class token: use pool="avg".')
    plain = config.pool == "token" and not config.registers
    require(plain or not config.distilled, 'distilled=True goes with pool="token", registers=0.')


def require(fine: bool, message: str) -> None:
    if not fine:
        raise ValueError(message)
