"""Small random models, and the noise that they look at."""

import numpy as np
import torch
from PIL import Image

from vit_demo.checkpoints import Checkpoint
from vit_demo.explain import Classifier
from vit_demo.model import VisionTransformer, ViTConfig
from vit_demo.view import Preprocess

SHAPES = {
    "class token": {},
    "distilled": {"distilled": True},
    "average": {"class_token": False, "pool": "avg", "last_norm": "pooled"},
    "registers": {"registers": 3},
    "average beside class token": {"pool": "avg", "last_norm": "pooled", "registers": 1},
    "headless": {"num_classes": 0},
}
WITH_HEAD = {name: shape for name, shape in SHAPES.items() if name != "headless"}


def small_classifier(seed: int = 0, **options) -> Classifier:
    """Random weights, five labels; `options` change the shape of the model."""
    torch.manual_seed(seed)
    options = {"image_size": 32, "patch_size": 8, "embed_dim": 24, "depth": 3, "heads": 3} | options
    config = ViTConfig(**{"num_classes": 5} | options)
    model = VisionTransformer(config)
    with torch.no_grad():
        for block in model.blocks:
            block.attn.qkv.weight.mul_(20)  # attention with clear preferences
    labels = [f"label {i}" for i in range(config.num_classes)]
    preprocess = Preprocess(size=config.image_size)
    return Classifier(Checkpoint("small", model, labels, preprocess), device="cpu")


def noise(seed: int = 0) -> Image.Image:
    pixels = np.random.default_rng(seed).integers(0, 255, (40, 60, 3), dtype=np.uint8)
    return Image.fromarray(pixels)
