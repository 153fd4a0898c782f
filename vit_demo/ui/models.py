"""The models that the page offers: embedded ones, the operator's own, and those people come for."""

from vit_demo.embedded import embedded
from vit_demo.explain import Classifier

# The models people come for, smallest first: (group, what it is, its timm name).
CURATED = (
    ("ImageNet", "DeiT tiny · patch 16 · 224", "deit_tiny_patch16_224.fb_in1k"),
    ("ImageNet", "DeiT small · patch 16 · 224", "deit_small_patch16_224.fb_in1k"),
    ("ImageNet", "DeiT base · patch 16 · 224", "deit_base_patch16_224.fb_in1k"),
    ("ImageNet", "DeiT base · patch 16 · 384", "deit_base_patch16_384.fb_in1k"),
    ("ImageNet", "ViT tiny · patch 16 · 224", "vit_tiny_patch16_224.augreg_in21k_ft_in1k"),
    ("ImageNet", "ViT tiny · patch 16 · 384", "vit_tiny_patch16_384.augreg_in21k_ft_in1k"),
    ("ImageNet", "ViT small · patch 32 · 224", "vit_small_patch32_224.augreg_in21k_ft_in1k"),
    ("ImageNet", "ViT small · patch 16 · 224", "vit_small_patch16_224.augreg_in21k_ft_in1k"),
    ("ImageNet", "ViT base · patch 32 · 224", "vit_base_patch32_224.augreg_in21k_ft_in1k"),
    ("ImageNet", "ViT base · patch 16 · 224", "vit_base_patch16_224.augreg2_in21k_ft_in1k"),
    ("ImageNet", "ViT base · patch 16 · 384", "vit_base_patch16_384.augreg_in21k_ft_in1k"),
    ("ImageNet", "ViT base · patch 8 · 224", "vit_base_patch8_224.augreg2_in21k_ft_in1k"),
    ("ImageNet", "ViT large · patch 16 · 224", "vit_large_patch16_224.augreg_in21k_ft_in1k"),
    ("ImageNet", "CLIP ViT large · patch 14 · 224", "vit_large_patch14_clip_224.openai_ft_in1k"),
    ("Distilled", "DeiT tiny · patch 16 · 224", "deit_tiny_distilled_patch16_224.fb_in1k"),
    ("Distilled", "DeiT small · patch 16 · 224", "deit_small_distilled_patch16_224.fb_in1k"),
    ("DeiT-III", "small · patch 16 · 224", "deit3_small_patch16_224.fb_in22k_ft_in1k"),
    ("DeiT-III", "base · patch 16 · 384", "deit3_base_patch16_384.fb_in22k_ft_in1k"),
    ("DeiT-III", "large · patch 16 · 224", "deit3_large_patch16_224.fb_in22k_ft_in1k"),
    ("Registers", "ViT little · 4 registers · 256", "vit_little_patch16_reg4_gap_256.sbb_in1k"),
    ("Registers", "ViT medium · 4 registers · 256", "vit_medium_patch16_reg4_gap_256.sbb_in12k_ft_in1k"),
    ("Maps only", "DINO small · patch 16", "vit_small_patch16_224.dino"),
    ("Maps only", "DINO small · patch 8", "vit_small_patch8_224.dino"),
    ("Maps only", "DINOv2 small · patch 14 · 518", "vit_small_patch14_dinov2.lvd142m"),
    ("Maps only", "DINOv2 small · 4 registers", "vit_small_patch14_reg4_dinov2.lvd142m"),
)  # fmt: skip


def model_choices(own: list[str]) -> list[tuple[str, str]]:
    """(what is shown, name): embedded models first, then the operator's own, then timm's by family."""
    kinds = {"vit-photos": "Embedded · photos, 100 labels", "vit-mnist": "Embedded · digits"}
    choices = [(kinds.get(name, f"Embedded · {name}"), name) for name in embedded()]
    choices += [(f"File · {name}", name) for name in own]
    return choices + [(f"{group} · {what}", name) for group, what, name in CURATED]


def kind_of(classifier: Classifier) -> str:
    """ "digit" models get a drawing pad, "photo" models photographs."""
    return "digit" if classifier.preprocess.light_on_dark else "photo"
