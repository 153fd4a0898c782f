"""A classifier, and what one forward pass of it can tell.

`Classifier.explain` runs the model once. The `Explanation` it returns keeps what `recorder.py` kept of
that pass; every later question (another layer, head, patch or setting) is answered from it.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from vit_demo import attention
from vit_demo.checkpoints import DEFAULT, Checkpoint, load_checkpoint
from vit_demo.class_maps import ATTENTION_GRADIENT_MAPS, attention_gradient_maps, contributions
from vit_demo.distributed import choose_device
from vit_demo.image import open_image
from vit_demo.inside import Inside
from vit_demo.labels import find_label
from vit_demo.map_settings import FUSIONS
from vit_demo.memory import keep_some
from vit_demo.model import readout_tokens
from vit_demo.recorder import InputRecorder, Query, Recorder, Recording, token_of
from vit_demo.validate import choice, index_of, is_whole, share, shown, whole
from vit_demo.view import View, make_view, to_tensor

Label = int | str | None  # a class by number or name, or the predicted one

keep_some()  # one explanation follows another


@dataclass(frozen=True)
class Prediction:
    label: str
    probability: float
    index: int


class Classifier:
    """A model with its labels and the way it wants its pictures."""

    def __init__(self, checkpoint: Checkpoint, device: str = "auto"):
        self.name = checkpoint.name
        self.labels = checkpoint.labels
        self.preprocess = checkpoint.preprocess
        self.device = choose_device(device)
        self.model = checkpoint.model.eval().requires_grad_(False).to(self.device)
        self.config = self.model.config

    def view(self, source: Any, fit: str = "crop") -> View:
        """The picture as the model will see it. `source`: a path, bytes, PIL image or array; or the
        view of another model, to look at the same picture."""
        how = self.preprocess, self.config.patch_size, fit
        if isinstance(source, View):
            return make_view(source.original, *how, size=source.size)
        return make_view(open_image(source), *how)

    def classify(self, source: Any, top: int = 10, fit: str = "crop") -> list[Prediction]:
        """The most probable labels; fused attention, no maps."""
        self.require_labels()
        return predictions(self.logits([self.view(source, fit)])[0], self.labels, top)

    def explain(self, source: Any, fit: str = "crop") -> "Explanation":
        """Classify a picture and remember how: one forward pass."""
        return self.explain_views([self.view(source, fit)])[0]

    def explain_views(self, views: Sequence[View], at_hand: bool = False) -> list["Explanation"]:
        """Several pictures of one size in one forward pass.

        `at_hand` keeps every layer's queries and keys; otherwise what entered a layer is kept, half as
        much, and the first question about the attention of its heads makes them from it.
        """
        kind = Recorder if at_hand else InputRecorder
        recorder = kind(self.config.depth, readout_tokens(self.config))
        logits = self.logits(views, recorder)
        each = zip(views, logits, recorder.recordings, strict=True)
        return [Explanation(self, view, own, recording) for view, own, recording in each]

    @torch.inference_mode()
    def logits(self, views: Sequence[View], recorder: Recorder | None = None) -> Tensor:
        """What the model says (B, classes) to pictures of one size, on the CPU."""
        pixels = torch.cat([to_tensor(view, self.preprocess) for view in views]).to(self.device)
        answer = recorder.watch(self.model, pixels) if recorder else self.model(pixels)
        logits = answer.float().cpu()
        if not logits.isfinite().all():
            raise ValueError(self.no_answer())
        return logits

    def no_answer(self) -> str:
        """What to say when the answer is NaN or infinite, as finite weights can make it."""
        return (
            f"The numbers in {self.name} overflow, and its answer is no number (NaN); its "
            "weights are damaged or its training diverged. Use another checkpoint."
        )

    def require_labels(self) -> None:
        if not self.labels:
            raise ValueError(
                f"{self.name} has no label head, so it cannot classify; it is for maps only. "
                "Choose a model with labels, such as deit_tiny_patch16_224.fb_in1k."
            )


class Explanation:
    """One picture, one pass. Maps are CPU float32 tensors (rows, cols) over the patch grid.

    Each map is a share of 1 over all tokens; what lies on class, distillation and register tokens is
    not in the map but is never hidden: `tokens=True` returns the whole (N,) vector, prefix tokens
    first, and `prefix_mass` is the rollout's share on them.
    """

    def __init__(self, classifier: Classifier, view: View, logits: Tensor, recording: Recording):
        self.classifier = classifier  # for the questions that need a pass of their own
        self.model_name = classifier.name
        self.labels = classifier.labels
        self.require_labels = classifier.require_labels
        self.config = classifier.config
        self.view = view
        self.grid = view.grid
        self.logits = logits  # (classes,); of a headless model: its features (D,)
        self.recording = recording
        self.readout_tokens = readout_tokens(self.config)
        self.class_vectors: dict[int, dict[str, Tensor]] = {}  # of each class asked for: small
        self.walk: Inside | None = None  # every step of the pass, once somebody has asked
        self.layers, self.heads, self.N = recording.readout_attention.shape

    @property
    def memory(self) -> int:
        """Bytes of all that is kept: tensors and pictures."""
        maps = sum(v.nbytes for of in list(self.class_vectors.values()) for v in of.values())
        walk = self.walk.nbytes if self.walk else 0
        return self.view.nbytes + self.recording.nbytes + self.logits.nbytes + maps + walk

    # The answer

    def top(self, k: int = 10) -> list[Prediction]:
        """The k most probable labels, best first."""
        self.require_labels()
        return predictions(self.logits, self.labels, k)

    def label_index(self, label: Label = None) -> int:
        """The class of a label: its number, its text, one of its names, or None: the predicted."""
        self.require_labels()
        return int(self.logits.argmax()) if label is None else find_label(self.labels, label)

    @property
    def pixels(self) -> Tensor:
        """What went into the model (1, C, H, W), made anew from the view."""
        return to_tensor(self.view, self.classifier.preprocess).to(self.classifier.device)

    # The maps

    def rollout(
        self,
        layer: int | None = -1,
        *,
        query: Query = None,
        fusion: str = "mean",
        residual: float = 0.5,
        discard: float = 0.0,
        start: int = 0,
        tokens: bool = False,
    ) -> Tensor:
        """Attention rollout of the answer (or of a patch) through the layers `start` to `layer`.

        `layer=None` gives the rollouts up to each layer at once: (layers, rows, cols), from `start` on.
        """
        start = self.layer_index(start)
        first, top = (start, self.layers - 1) if layer is None else (self.layer_index(layer),) * 2
        residual, discard = share("residual", residual), share("discard", discard, one=False)
        if start > top:
            raise ValueError(f"start {start} lies above layer {top}; start at or below it.")
        choice("fusion", fusion, FUSIONS)
        v = self.query_vector(query)
        maps = v.new_empty(0, self.N)  # up to each layer that is begun with, the lowest first
        for index in range(top, start - 1, -1):
            if len(maps):
                A = self.fused(index, fusion, discard)
                maps = attention.through_layer(maps, A, residual)
            if index >= first:
                own = self.query_row(index, query, fusion, discard)
                maps = torch.cat([((1 - residual) * own + residual * v)[None], maps])
        maps = maps if layer is None else maps[0]
        return maps if tokens else self.as_map(maps)

    def head_rollouts(
        self,
        layer: int | None = -1,
        *,
        query: Query = None,
        below: str = "mean",
        part: str = "whole",
        fusion: str = "mean",
        residual: float = 0.5,
        discard: float = 0.0,
        tokens: bool = False,
    ) -> Tensor:
        """What each head of a layer brings to the answer: (heads, rows, cols).

        `layer=None` gives all layers at once: (layers, heads, rows, cols). With `below="mean"` the
        head is followed by the fused attention of the layers below it (their mean over the heads is the
        rollout up to this layer); with `below="same"` by the head of the same number in each layer.
        `part="special"` is what sets a head apart: its map minus the mean over the heads of its layer,
        above or below zero, with sum zero over the heads.
        """
        residual, discard = share("residual", residual), share("discard", discard, one=False)
        choice("fusion", fusion, FUSIONS)
        choice("part", part, ("whole", "special"))
        top = self.layers - 1 if layer is None else self.layer_index(layer)
        v = self.query_vector(query)
        if below == "same":
            maps = attention.same_head_rollouts(
                lambda index: self.layer_attention(index, discard), top + 1, v, residual
            )
        elif below == "mean":
            if query is None and not discard:
                asked = self.recording.readout_attention[: top + 1]
            else:
                layers = range(top + 1)
                asked = torch.stack([self.query_attention(i, query, discard) for i in layers])
            fused = [self.fused(index, fusion, discard) for index in range(top)]
            maps = attention.head_rollouts(asked, fused, v, residual)
        else:
            raise ValueError(f'below is {shown(below)}; use "mean" or "same".')
        if layer is not None:
            maps = maps[top]
        if part == "special":
            maps = attention.special_part(maps)
        return maps.clone() if tokens else self.as_map(maps)

    def attention(
        self,
        layer: int = -1,
        head: int | str | None = None,
        query: Query = None,
        *,
        direction: str = "from",
        tokens: bool = False,
    ) -> Tensor:
        """Raw attention in one layer, from the query token to all, or to it from all.

        `head`: a number gives (rows, cols); None gives every head (heads, rows, cols); "mean", "max"
        or "min" over the heads gives (rows, cols). A column ("to") is not a share of 1: each of its
        entries belongs to another token's row.
        """
        layer = self.layer_index(layer)
        if direction == "from":
            maps = self.query_attention(layer, query)
        elif direction == "to":
            A = self.layer_attention(layer)
            maps = A[:, :, self.query_tokens(query)].mean(dim=-1)
        else:
            raise ValueError(f'direction is {shown(direction)}; use "from" or "to".')
        if isinstance(head, str):
            if head not in FUSIONS:
                raise ValueError(f"head is {shown(head)}; use a number, mean, max or min.")
            maps = attention.over_heads(maps, head)
        elif head is not None:
            maps = maps[self.head_index(head)]
        return maps.clone() if tokens else self.as_map(maps)

    # Why this class: maps that need gradients, so the first one of a class costs a pass of its own

    def contribution(
        self,
        label: Label | Sequence[Label] = None,
        minus: int | str | None = None,
        *,
        tokens: bool = False,
    ) -> Tensor:
        """What each patch adds to log p of this class, or takes from it (Mehri et al. 2025): signed.

        In units of log p, added up over the inputs of all blocks. With `minus`: what speaks for
        `label` rather than for that one, in one pass back; it is `contribution(label) -
        contribution(minus)`, exactly. A list of labels shares one forward pass.
        """
        if minus is None:
            return self.class_map("contribution", label, tokens)
        wanted, many = self.label_indices(label)
        classes = torch.tensor(wanted)[:, None]
        others = torch.full_like(classes, self.label_index(minus))
        vectors = contributions(self.classifier.model, self.pixels, classes, others)[:, 0]
        vectors = vectors if many else vectors[0]
        return vectors if tokens else self.as_map(vectors)

    def relevance(self, label: Label | Sequence[Label] = None, *, tokens: bool = False) -> Tensor:
        """Class relevance (Chefer et al. 2021): what in the picture speaks for this class.

        Not a share of 1, but in units of the logit. A list of labels shares one forward pass and
        gives one map each (labels, rows, cols); `relevance(a) - relevance(b)` compares two.
        """
        return self.class_map("relevance", label, tokens)

    def gradient_rollout(
        self, label: Label | Sequence[Label] = None, *, tokens: bool = False
    ) -> Tensor:
        """Rollout through the attention that speaks for this class; a share of 1, as rollout."""
        return self.class_map("gradient_rollout", label, tokens)

    def grad_cam(self, label: Label | Sequence[Label] = None, *, tokens: bool = False) -> Tensor:
        """The last layer's attention, its heads weighted by their gradient; units of the logit."""
        return self.class_map("grad_cam", label, tokens)

    def class_map(self, name: str, label: Label | Sequence[Label], tokens: bool) -> Tensor:
        """One of the class maps. Contribution has a pass of its own, the others come from one
        together; all are kept: N numbers each."""
        wanted, many = self.label_indices(label)
        known = self.class_vectors
        missing = [index for index in dict.fromkeys(wanted) if name not in known.get(index, {})]
        if missing:
            classes, model = torch.tensor(missing)[:, None], self.classifier.model
            if name in ATTENTION_GRADIENT_MAPS:
                maps = attention_gradient_maps(model, self.pixels, classes, self.readout_tokens)
            else:
                maps = {name: contributions(model, self.pixels, classes)}
            for i, index in enumerate(missing):
                known.setdefault(index, {}).update({kind: of[i, 0] for kind, of in maps.items()})
        vectors = torch.stack([known[index][name] for index in wanted])
        vectors = vectors if many else vectors[0]
        return vectors if tokens else self.as_map(vectors)

    def label_indices(self, label: Label | Sequence[Label]) -> tuple[list[int], bool]:
        """The classes of one label or of a list of labels, and whether it was a list."""
        many = isinstance(label, Sequence | np.ndarray | Tensor)
        many = many and not isinstance(label, str) and not is_whole(label)
        return [self.label_index(one) for one in (label if many else [label])], many

    @property
    def prefix_mass(self) -> float:
        """The share of the rollout that lies on class, distillation and register tokens."""
        return self.rollout(tokens=True)[: self.config.prefix_tokens].sum().item()

    # To take away

    def arrays(self, query: Query = None, below: str = "mean", **settings) -> dict[str, np.ndarray]:
        """The numbers behind the pictures; `settings` are fusion, residual and discard."""
        P = self.config.prefix_tokens
        rollout = self.rollout(query=query, tokens=True, **settings)
        heads = self.head_rollouts(None, query=query, below=below, tokens=True, **settings)
        arrays = {
            "rollout": self.as_map(rollout),
            "head_rollouts": self.as_map(heads),
            "logits": self.logits if self.labels else torch.empty(0),
            "prefix_mass": rollout[:P].sum(),
            "head_prefix_mass": heads[..., :P].sum(dim=-1),
        }
        return {name: tensor.numpy() for name, tensor in arrays.items()}

    def describe(self, top: int = 10) -> dict:
        """Model, answer and geometry in words that JSON knows."""
        return {
            "model": self.model_name,
            "labels": [asdict(p) for p in self.top(top)] if self.labels else [],
            "layers": self.layers,
            "heads": self.heads,
            "grid": list(self.grid),
            "prefix_tokens": list(self.config.prefix),
            "image_size": list(self.view.size),
            "crop_box": list(self.view.box),
            "fit": self.view.fit,
        }

    # Step by step

    def inside(self) -> Inside:
        """Every number on the way from the pixels to the answer: a pass of its own, kept."""
        if self.walk is None:
            of = self.classifier
            self.walk = Inside(of.model, self.pixels, of.preprocess, of.labels)
        return self.walk

    # How they are made

    def as_map(self, v: Tensor) -> Tensor:
        """The patches of a token vector (..., N) on their grid (..., rows, cols)."""
        return v[..., self.config.prefix_tokens :].unflatten(-1, self.grid).clone()

    def query_tokens(self, query: Query) -> slice:
        """The tokens that ask: the read-out's, or one."""
        if query is None:
            return self.readout_tokens
        token = token_of(query, self.grid, self.config)
        return slice(token, token + 1)

    def query_vector(self, query: Query) -> Tensor:
        return attention.token_mean(self.query_tokens(query), self.N)

    def recorded(self, layer: int) -> Recording:
        """What is kept, with this layer's queries and keys."""
        return self.recording.with_queries(layer, self.classifier.model.blocks[layer])

    def layer_mean(self, layer: int) -> Tensor:
        """A layer's attention (N, N), the mean over its heads."""
        last = layer == self.layers - 1
        return (self.recorded(layer) if last else self.recording).mean_of(layer)

    def layer_attention(self, layer: int, discard: float = 0.0) -> Tensor:
        """A layer's attention (h, N, N), made anew from its queries and keys."""
        A = self.recorded(layer).attention(layer)
        return attention.discard_smallest(A, discard, self.protected_tokens) if discard else A

    def fused(self, layer: int, fusion: str, discard: float) -> Tensor:
        """A layer's attention as one matrix (N, N) whose rows sum to 1."""
        if fusion == "mean":
            A = self.layer_mean(layer)
        else:
            A = attention.fuse_heads(self.layer_attention(layer), fusion)
        return attention.discard_smallest(A, discard, self.protected_tokens) if discard else A

    def query_row(self, layer: int, query: Query, fusion: str, discard: float) -> Tensor:
        """The query's row (N,) of `fused`, without the other rows where they are not needed."""
        if fusion == "mean" and not discard:
            return self.query_attention(layer, query).mean(dim=0)
        return self.query_vector(query) @ self.fused(layer, fusion, discard)

    def query_attention(self, layer: int, query: Query, discard: float = 0.0) -> Tensor:
        """The query's own attention in each head (h, N); one row a head costs next to nothing."""
        if discard:
            return self.layer_attention(layer, discard)[:, self.query_tokens(query)].mean(dim=1)
        if query is None:
            return self.recording.readout_attention[layer]
        return self.recorded(layer).attention(layer, self.query_tokens(query))[:, 0]

    @property
    def protected_tokens(self) -> slice | None:
        """Columns never discarded: the read-out's, where it is not the mean of all patches."""
        return None if self.config.pool == "avg" else self.readout_tokens

    def layer_index(self, layer: int) -> int:
        return index_of("layer", layer, self.layers)

    def head_index(self, head: int) -> int:
        return index_of("head", head, self.heads)


def load(
    name: str = DEFAULT,
    *,
    arch: str | None = None,
    labels: str | None = None,
    device: str = "auto",
) -> Classifier:
    """A classifier by its name: embedded, a timm name, or a path to .safetensors or .pth. Without a name
    it is the embedded model of photographs.

    `arch` is the timm architecture of a file that does not describe itself; `labels` a text file
    with one label a line.
    """
    return Classifier(load_checkpoint(name, arch=arch, labels=labels), device)


def predictions(logits: Tensor, labels: Sequence[str], top: int) -> list[Prediction]:
    """The most probable labels, best first."""
    top = whole("top", top)
    if top < 1:
        raise ValueError(f"top is {shown(top)}; ask for 1 label or more.")
    values, indices = logits.softmax(dim=-1).topk(min(top, len(logits)))
    pairs = zip(values.tolist(), indices.tolist(), strict=True)
    return [Prediction(labels[index], probability, index) for probability, index in pairs]
