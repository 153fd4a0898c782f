"""The models that the page offers: embedded ones, the operator's own, and those people come for."""

import os
import re

from vit_demo.checkpoints import about_embedded
from vit_demo.checkpoints.hub import can_download, downloaded, is_on_disk
from vit_demo.checkpoints.timm_models import parameter_count, repository, supported_timm
from vit_demo.embedded import DEFAULT, embedded
from vit_demo.explain import Classifier
from vit_demo.ui.store import Server
from vit_demo.ui.texts import LANGUAGES, one_sentence, words

# The models people come for, smallest first: family, what it is, its timm name, megabytes.
CURATED = (
    ("imagenet", "DeiT tiny · patch 16 · 224", "deit_tiny_patch16_224.fb_in1k", 23),
    ("imagenet", "DeiT small · patch 16 · 224", "deit_small_patch16_224.fb_in1k", 88),
    ("imagenet", "DeiT base · patch 16 · 224", "deit_base_patch16_224.fb_in1k", 346),
    ("imagenet", "DeiT base · patch 16 · 384", "deit_base_patch16_384.fb_in1k", 348),
    ("imagenet", "ViT tiny · patch 16 · 224", "vit_tiny_patch16_224.augreg_in21k_ft_in1k", 23),
    ("imagenet", "ViT tiny · patch 16 · 384", "vit_tiny_patch16_384.augreg_in21k_ft_in1k", 23),
    ("imagenet", "ViT small · patch 32 · 224", "vit_small_patch32_224.augreg_in21k_ft_in1k", 92),
    ("imagenet", "ViT small · patch 16 · 224", "vit_small_patch16_224.augreg_in21k_ft_in1k", 88),
    ("imagenet", "ViT base · patch 32 · 224", "vit_base_patch32_224.augreg_in21k_ft_in1k", 353),
    ("imagenet", "ViT base · patch 16 · 224", "vit_base_patch16_224.augreg2_in21k_ft_in1k", 346),
    ("imagenet", "ViT base · patch 16 · 384", "vit_base_patch16_384.augreg_in21k_ft_in1k", 348),
    ("imagenet", "ViT base · patch 8 · 224", "vit_base_patch8_224.augreg2_in21k_ft_in1k", 346),
    ("imagenet", "ViT large · patch 16 · 224", "vit_large_patch16_224.augreg_in21k_ft_in1k", 1217),
    ("imagenet", "CLIP large · patch 14 · 224", "vit_large_patch14_clip_224.openai_ft_in1k", 1217),
    ("distilled", "DeiT tiny · patch 16 · 224", "deit_tiny_distilled_patch16_224.fb_in1k", 24),
    ("distilled", "DeiT small · patch 16 · 224", "deit_small_distilled_patch16_224.fb_in1k", 90),
    ("deit3", "small · patch 16 · 224", "deit3_small_patch16_224.fb_in22k_ft_in1k", 88),
    ("deit3", "base · patch 16 · 384", "deit3_base_patch16_384.fb_in22k_ft_in1k", 348),
    ("deit3", "large · patch 16 · 224", "deit3_large_patch16_224.fb_in22k_ft_in1k", 1218),
    ("registers", "ViT little · 4 registers · 256", "vit_little_patch16_reg4_gap_256.sbb_in1k", 90),
    ("registers", "ViT medium · 4 registers · 256",
     "vit_medium_patch16_reg4_gap_256.sbb_in12k_ft_in1k", 156),
    ("maps", "DINO small · patch 16", "vit_small_patch16_224.dino", 87),
    ("maps", "DINO small · patch 8", "vit_small_patch8_224.dino", 87),
    ("maps", "DINOv2 small · patch 14 · 518", "vit_small_patch14_dinov2.lvd142m", 88),
    ("maps", "DINOv2 small · 4 registers", "vit_small_patch14_reg4_dinov2.lvd142m", 88),
)  # fmt: skip
IMAGENET = "deit_small_patch16_224.fb_in1k"  # what is offered beside an embedded model
MOST_FOUND = 30


def models(server: Server, language: str) -> list[dict]:
    """What can be chosen: embedded models, the operator's own, then timm's by family. Each with its
    title, and whether it is here or has to be downloaded, and its size."""
    rows = [
        row(name, embedded_title(name, language), path.stat().st_size / 1e6, True, language)
        for name, path in sorted(embedded().items(), key=lambda item: item[0] != DEFAULT)
    ]
    for name, how in server.files.items():
        size = os.stat(how["name"]).st_size / 1e6
        rows.append(row(name, title(language, "file", name), size, True, language))
    for family, what, name, megabytes in CURATED:
        here = name in server.models or is_on_disk(name)
        rows.append(row(name, curated_title(language, family, what), megabytes, here, language))
    return rows


def row(name: str, shown: str, megabytes: float, here: bool, language: str) -> dict:
    text, size = words(language), size_text(megabytes)
    if "_clip_" in name and "_ft_" not in name:  # such files may hold CLIP's other half, too
        size = text["model_or_more"].format(size=size)
    where = text["model_here" if here else "model_download"].format(size=size)
    return {"name": name, "title": shown, "size": size, "here": here, "where": where}


def size_text(megabytes: float) -> str:
    return f"{megabytes / 1000:.1f} GB" if megabytes >= 1000 else f"{max(1, round(megabytes))} MB"


def title(language: str, family: str, what: str) -> str:
    return f"{words(language)[f'family_{family}']} · {what}"


def curated_title(language: str, family: str, what: str) -> str:
    """In the words of the language: "patch 16", "4 registers"."""
    text = words(language)
    what = re.sub(r"patch (\d+)", lambda found: text["model_patch"].format(size=found[1]), what)
    what = re.sub(
        r"(\d+) registers", lambda found: text["model_registers"].format(count=found[1]), what
    )
    return title(language, family, what)


def embedded_title(name: str, language: str) -> str:
    about, text = about_embedded(name), words(language)
    kind = "embedded_digits" if about["preprocess"].get("light_on_dark") else "embedded_photos"
    return title(language, "embedded", text[kind].format(count=len(about["labels"])))


def title_of(server: Server, name: str, language: str) -> str:
    """What the chooser shows of the model that is in use."""
    if name in embedded():
        return embedded_title(name, language)
    if name in server.files:
        return title(language, "file", name)
    curated = {name: curated_title(language, family, what) for family, what, name, _ in CURATED}
    return curated.get(name, name)


def find_models(server: Server, text: str, language: str) -> dict:
    """The models that are called so, by any part of their titles and timm names, in any order. "DeiT-tiny"
    is called "DeiT tiny" in a title and deit_tiny in a name: a hyphen is as good as a space."""
    offered = models(server, language)
    wanted = [spaced(word) for word in text.casefold().replace("·", " ").split()]
    if not wanted:
        return {"models": offered, "more": 0}
    english = {row["name"]: title_of(server, row["name"], "en") for row in offered}

    def found(wanted: list[str]) -> tuple[list[dict], list[str]]:
        def fits(*names: str) -> bool:
            every = spaced(" ".join(names).casefold())
            return all(word in every for word in wanted)

        rows = [row for row in offered if fits(row["name"], row["title"], english[row["name"]])]
        return rows, [name for name in supported_timm() if name not in english and fits(name)]

    rows, others = found(wanted)
    if not rows and not others:  # "deit-base-384": the parts may stand apart
        rows, others = found(" ".join(wanted).split())
    room = max(0, MOST_FOUND - len(rows))
    for name in others[:room]:
        megabytes = 4 * parameter_count(name) / 1e6
        rows.append(row(name, name, megabytes, is_on_disk(name, repository(name)), language))
    exact = text.strip().casefold()
    rows.sort(key=lambda row: exact not in (row["name"].casefold(), row["title"].casefold()))
    return {"models": rows, "more": max(0, len(others) - room)}


def spaced(name: str) -> str:
    """`page/chooser.js` does the same with what is in its list."""
    return name.replace("-", " ").replace("_", " ")


def imagenet_offer(server: Server, language: str) -> dict:
    """The ImageNet model beside a small one: DeiT-small, or another one that is already here."""
    rows = {row["name"]: row for row in models(server, language) if is_imagenet(row["name"])}
    chosen = rows[IMAGENET]
    if not chosen["here"]:
        chosen = next((row for row in rows.values() if row["here"]), chosen)
    text = words(language)
    label = text["offer_here" if chosen["here"] else "offer"]
    short = chosen["title"].split(" · ")[1]
    offer = {"name": chosen["name"], "text": label.format(model=short, size=chosen["size"])}
    can = chosen["here"] or can_download(f"timm/{chosen['name']}")
    return offer | {"reason": "" if can else text["offer_offline"]}


def on_its_way(name: str) -> dict:
    """What is said while a model is loaded: in every language, because the visitor may change it."""
    came, total = downloaded(name) or (0, 0)
    if not total:
        return {"says": {lang: words(lang)["loading"].format(name=name) for lang in LANGUAGES}}
    values = {"name": name, "percent": 100 * came // total, "size": size_text(total / 1e6)}
    says = {lang: words(lang)["downloading"].format(**values) for lang in LANGUAGES}
    return {"says": says, "share": came / total}


def why_not(name: str, reason: str) -> dict[str, str]:
    """Why a model cannot be had, in every language."""
    says = {}
    for language in LANGUAGES:
        text = words(language)
        if "hub cannot be reached" in reason:
            says[language] = text["hub"].format(name=name)
        elif reason.startswith(f"There is no model {name!r}. The closest"):
            says[language] = text["no_model"].format(name=name)
        elif reason:  # without what only somebody at the server can do
            sentence = one_sentence(reason, language)
            says[language] = sentence.partition(f" Put {name}.safetensors")[0]
        else:
            says[language] = text["failed_model"].format(name=name)
    return says


def instead_of(name: str, reason: str) -> list[str]:
    """The models that a reason names: what else can be used."""
    if "could not be downloaded" in reason:
        return []
    known = {*embedded(), *supported_timm()} - {name}
    words_of_it = [word.strip(".") for word in re.findall(r"[\w.-]+", reason)]
    return list(dict.fromkeys(word for word in words_of_it if word in known))


def is_imagenet(name: str) -> bool:
    return any(name == curated and family == "imagenet" for family, _, curated, _ in CURATED)


def kind_of(classifier: Classifier) -> str:
    """ "digit" models get a drawing pad, "photo" models photographs."""
    return "digit" if classifier.preprocess.light_on_dark else "photo"
