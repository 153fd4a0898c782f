"""What timm knows: how its models are built, what they are called, how they want their pictures.

timm says how its own models are built; the weights go into our VisionTransformer, under the same
parameter names. What is not a plain ViT is refused with the reason.
"""

import difflib
import threading
from functools import cache

import torch
from torch import Tensor

from vit_demo.checkpoints.weights import CheckpointError
from vit_demo.embedded import embedded
from vit_demo.model import ViTConfig
from vit_demo.view import Preprocess

USUAL = "deit_tiny_patch16_224.fb_in1k"  # what to try when nothing is near
NOT_PLAIN = {
    "beit": "is a BEiT, whose attention adds learned relative positions",
    "eva": "is an EVA, with rotary positions and gated MLPs, not a plain ViT",
    "swin_transformer": "is a Swin, which attends within shifting windows, not to the whole picture",
    "swin_transformer_v2": "is a Swin, which attends within shifting windows, not globally",
    "vision_transformer_hybrid": "is a hybrid: a convolutional network stands before its patches",
    "vision_transformer_relpos": "adds relative positions inside its attention",
    "vision_transformer_sam": "is SAM's encoder, which attends within windows",
}


def build_timm(name: str, **options) -> torch.nn.Module:
    """timm's own model of this name, without weights, if it is a plain ViT."""
    import timm

    arch, _, tag = name.partition(".")
    if not timm.is_model(arch) or (tag and tag not in pretrained_tags(arch)):
        raise CheckpointError(unknown_name(name))
    reason = reason_against(arch)
    if reason:
        raise CheckpointError(f"{name} {reason}; try {nearest(name)}.")
    if not options and not timm.models.is_model_pretrained(name):
        raise CheckpointError(f"timm has no weights for {name}; try {nearest(name)}.")
    with torch.device("meta"):
        return timm.create_model(name, weight_init="skip", **options)


@cache
def parameter_count(name: str) -> int:
    """How many numbers this timm model has: four bytes each, in the file that is downloaded."""
    return sum(parameter.numel() for parameter in build_timm(name).parameters())


def pretrained_tags(arch: str) -> list[str]:
    import timm

    return [full.partition(".")[2] for full in timm.list_pretrained(f"{arch}.*")]


@cache
def reason_against(arch: str) -> str | None:
    """Why this timm architecture is not a plain ViT, as the rest of a sentence; None if it is."""
    import timm
    from timm import layers
    from timm.models import deit, vision_transformer

    module = timm.models.model_entrypoint(arch).__module__
    if module not in (vision_transformer.__name__, deit.__name__):
        family = module.rpartition(".")[2]
        return NOT_PLAIN.get(family, f"is not a plain ViT (timm keeps it in {family}.py)")
    with torch.device("meta"):
        # One block shows how all are made; there is nothing to initialise.
        model = timm.create_model(arch, depth=1, weight_init="skip")
    if type(model) not in (vision_transformer.VisionTransformer, deit.VisionTransformerDistilled):
        return f"is a {type(model).__name__}, not a plain ViT"
    block = model.blocks[0]
    if type(model.patch_embed) is not layers.PatchEmbed:
        return NOT_PLAIN["vision_transformer_hybrid"]
    (H, W), (p, q) = model.patch_embed.img_size, model.patch_embed.patch_size
    if H % p or W % q:
        return f"cuts {H}x{W} pixels into patches of {p}x{q}, which leaves a rim unseen"
    if type(block) is not vision_transformer.Block:
        return f"is built from {type(block).__name__}s, not from ordinary pre-norm blocks"
    if type(block.attn) is not layers.Attention:
        return f"does not use ordinary attention but {type(block.attn).__name__}"
    if model.attn_pool is not None:
        return "pools with an attention layer of its own instead of a class token or an average"
    if type(block.mlp) is not layers.Mlp:
        return f"has a {type(block.mlp).__name__} in place of the ordinary MLP"
    if not isinstance(block.norm1, torch.nn.LayerNorm):
        return f"uses {type(block.norm1).__name__} in place of LayerNorm"
    inner = (block.attn.norm, block.attn.q_norm, block.attn.k_norm, block.mlp.norm)
    if not all(isinstance(module, torch.nn.Identity) for module in inner):
        return "has extra norms inside its attention or MLP"
    if type(block.mlp.act) not in activation_names():
        return f"uses the activation {type(block.mlp.act).__name__}"
    odd = block.attn.gate is not None or block.attn.attn_dim != model.embed_dim
    if odd or model.pos_embed is None or model.global_pool not in ("token", "avg"):
        return "differs from a plain ViT in its attention, positions or pooling"
    return None


def activation_names() -> dict[type, str]:
    from timm import layers

    return {
        torch.nn.GELU: "gelu",
        layers.GELU: "gelu",
        layers.GELUTanh: "gelu_tanh",
        layers.QuickGELU: "quick_gelu",
    }


def config_of(reference: torch.nn.Module) -> ViTConfig:
    """Our description of the shape of timm's model."""
    block = reference.blocks[0]
    has_scale = not isinstance(block.ls1, torch.nn.Identity)
    norms = {"tokens": reference.norm, "pooled": reference.fc_norm}
    norms = [where for where, norm in norms.items() if isinstance(norm, torch.nn.LayerNorm)]
    return ViTConfig(
        image_size=tuple(reference.patch_embed.img_size),
        patch_size=tuple(reference.patch_embed.patch_size),
        channels=reference.patch_embed.proj.in_channels,
        embed_dim=reference.embed_dim,
        depth=len(reference.blocks),
        heads=block.attn.num_heads,
        mlp_dim=block.mlp.fc1.out_features,
        num_classes=reference.num_classes,
        class_token=reference.cls_token is not None,
        distilled=hasattr(reference, "dist_token"),
        registers=reference.num_reg_tokens,
        pool=reference.global_pool,
        no_embed_class=reference.no_embed_class,
        pre_norm=isinstance(reference.norm_pre, torch.nn.LayerNorm),
        layer_scale=1e-5 if has_scale else None,  # the start value; the weights replace it
        qkv_bias=block.attn.qkv.bias is not None,
        activation=activation_names()[type(block.mlp.act)],
        last_norm=norms[0] if norms else "none",
        norm_eps=block.norm1.eps,
    )


def preprocess_of(reference: torch.nn.Module) -> Preprocess:
    from timm.data import resolve_model_data_config

    data = resolve_model_data_config(reference)
    return Preprocess(
        size=tuple(data["input_size"][1:]),
        mean=tuple(data["mean"]),
        std=tuple(data["std"]),
        interpolation=data["interpolation"],
        crop_pct=data["crop_pct"],
        crop_mode=data["crop_mode"],
    )


def timm_names(weights: dict[str, Tensor], reference: torch.nn.Module) -> dict[str, Tensor]:
    """Weights as they were published, renamed and resampled the way timm itself does it."""
    from timm.models.vision_transformer import checkpoint_filter_fn

    try:
        return checkpoint_filter_fn(weights, reference, adapt_layer_scale=True)
    except Exception as error:  # it trusts the names and shapes that it finds
        raise CheckpointError(
            "The weights do not fit this architecture; check --arch against the model that was "
            "trained."
        ) from error


@cache
def imagenet_labels(classes: int) -> list[str]:
    """The label names of the ImageNet subset with so many classes; none for other numbers."""
    from timm.data import ImageNetInfo, infer_imagenet_subset

    subset = infer_imagenet_subset({"num_classes": classes})
    return ImageNetInfo(subset).label_descriptions() if subset else []


def imagenet_synsets(classes: int) -> dict[str, int]:
    """Synset, such as n02123045, -> class, of the ImageNet subset with so many classes; or nothing."""
    from timm.data import ImageNetInfo, infer_imagenet_subset

    subset = infer_imagenet_subset({"num_classes": classes})
    names = ImageNetInfo(subset).label_names() if subset else []
    return {synset: index for index, synset in enumerate(names)}


# Which names there are


LOOKING = threading.Lock()  # who comes while somebody looks waits for that


def supported_timm() -> dict[str, int]:
    """Every timm checkpoint that can be loaded, with its number of labels (0: for maps only)."""
    with LOOKING:
        return look_through_timm()


@cache
def look_through_timm() -> dict[str, int]:
    import timm

    names = {}
    for name in timm.list_pretrained():
        cfg = timm.models.get_pretrained_cfg(name)
        if cfg.hf_hub_id and reason_against(name.partition(".")[0]) is None:
            names[name] = cfg.num_classes if imagenet_labels(cfg.num_classes) else 0
    return names


def repository(name: str) -> str | None:
    """Where the hub keeps a timm checkpoint; some share one."""
    import timm

    return timm.models.get_pretrained_cfg(name).hf_hub_id


def nearest(name: str) -> str:
    """The supported model whose name is most like this one; with labels, unless this has none."""
    import timm

    known = timm.is_model(name.partition(".")[0])
    cfg = timm.models.get_pretrained_cfg(name, allow_unregistered=True) if known else None
    headless = cfg is not None and not imagenet_labels(cfg.num_classes)
    names = [full for full, classes in supported_timm().items() if headless or classes == 1000]
    names = [full for full in names if not full.startswith("test_")]  # timm's toys
    return (difflib.get_close_matches(name, names, n=1, cutoff=0.5) or [USUAL])[0]


def unknown_name(name: str) -> str:
    names = [*embedded(), *supported_timm()]
    close = difflib.get_close_matches(name, names, n=3, cutoff=0.5) or [nearest(name)]
    return (
        f"There is no model {name!r}. The closest names: {', '.join(close)}. "
        "Use one of them; python -m vit_demo models lists all."
    )
