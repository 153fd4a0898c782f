"""The tab Inside: ten steps from pixels to the answer with the visitor's own numbers, and the model's
anatomy. The browser's side is in `static/inside/`.

Every number is the library's (`vit_demo.inside`, `vit_demo.anatomy`). A part is what one step needs for
one choice of patch, layer, head or label: small, and asked for once. Pointing at things needs no part:
the browser has their numbers already. The source beside each step is read when the app starts.
"""

import base64
import inspect
import json
import math
import textwrap
from collections.abc import Callable
from typing import NamedTuple
from weakref import WeakKeyDictionary

import gradio as gr
import numpy as np
import torch
from torch import Tensor

from vit_demo import inside, model, view
from vit_demo.anatomy import Anatomy, anatomy
from vit_demo.checkpoints import example_path
from vit_demo.explain import Classifier, Explanation, Query, predictions
from vit_demo.ui import server_functions as ask
from vit_demo.ui.html import EXAMPLES, HTML
from vit_demo.ui.models import kind_of
from vit_demo.ui.payload import coded, pack
from vit_demo.ui.static import mount_script, read_static
from vit_demo.ui.store import Server
from vit_demo.ui.texts import INSIDE_TEXTS
from vit_demo.validate import choice, index_of

FINE = (
    37_000  # numbers of one part that are sent in 16 bits, below 100 kB as text; more of them in 8
)
MOST_POSITIONS = 256  # patches whose positions are compared each with each; else one with all
UNITS, FILTERS, TOP = 5, 28, 10


class Wanted(NamedTuple):
    """What a request may name; each part takes what it needs."""

    layer: int = -1
    head: int = 0
    query: Query = None
    label: int | None = None
    channel: int | None = None  # None: the one that answers most strongly
    centred: bool = False
    example: int = 0


def wanted(request: dict) -> Wanted:
    query = request.get("query")
    given = {name: request[name] for name in ("layer", "head", "channel", "example", "label")
             if request.get(name) is not None}  # fmt: skip
    if query is not None:
        given["query"] = ask.place("query", query)
    return Wanted(**given, centred=bool(request.get("centred")))


Part = tuple[dict, dict[str, np.ndarray]]  # what JSON knows, and arrays


# 1 and 2


def patch(e: Explanation, w: Wanted) -> Part:
    walk, found = e.inside(), e.inside().patch(w.query)
    (row, col), (p, q) = divmod(walk.patch_number(w.query), e.grid[1]), e.config.patch_size
    values = walk.pixels().values[:, row * p : row * p + p, col * q : col * q + q]
    about = {"patch": [row, col], "difference": found.difference}
    return about, {
        "values": values.round().numpy().astype(np.uint8),
        **floats(pixels=found.pixels, convolution=found.by_convolution, unfold=found.by_unfold),
    }


def kernel(e: Explanation, w: Wanted) -> Part:
    walk, channel = e.inside(), w.channel
    if channel is None:
        channel = int(walk.patch(w.query).by_convolution.abs().argmax())
    found = walk.patch_products(channel, w.query)
    return {"bias": found.bias, "channel": channel}, floats(kernel=found.kernel)


def filters(e: Explanation, w: Wanted) -> Part:
    found = inside.filters(e.classifier.model, FILTERS)
    most = found.components.abs().amax(dim=(1, 2, 3), keepdim=True).clamp_min(1e-12)
    codes = (found.components / most * 127.5 + 127.5).round()
    arrays = {"components": codes.numpy().astype(np.uint8)} | floats(variance=found.variance)
    return {"count": len(found.variance)}, arrays


# 3 and 4


def embedding(e: Explanation, w: Wanted) -> Part:
    found = e.inside().embedding()
    return {}, floats(lengths=found.lengths, prefix=found.prefix.norm(dim=-1))


def positions(e: Explanation, w: Wanted) -> Part:
    """The cosines of all positions with all, if they are few, else with one patch's."""
    cosines = inside.position_similarity(e.classifier.model, e.grid, w.centred)
    if len(cosines) > MOST_POSITIONS:
        return {}, floats(row=cosines[e.inside().patch_number(w.query)])
    return {}, {"all": (cosines * 127.5 + 127.5).round().numpy().astype(np.uint8)}


def shuffle(e: Explanation, w: Wanted) -> Part:
    found = e.inside().shuffle()
    about = {"difference": float((found.with_positions - found.logits).abs().max())}
    for when in ("logits", "with_positions", "without_positions"):
        about[when] = top_labels(e, getattr(found, when), 3) if e.labels else []
    return about, {"order": found.order.numpy().astype(np.uint16)}


def norm(e: Explanation, w: Wanted) -> Part:
    walk = e.inside()
    found, (_, block) = walk.layer_norm(w.layer, w.query), walk.block(w.layer)
    vectors = {"before": found.before, "after": found.after}
    vectors |= {"weight": block.norm1.weight, "bias": block.norm1.bias}
    return {"mean": found.mean, "deviation": found.deviation}, floats(**vectors)


def lengths(e: Explanation, w: Wanted) -> Part:
    walk = e.inside()
    marked = walk.marked().nonzero()
    about = {"marked": marked[:200].tolist(), "count": len(marked), "times": inside.MARKED}
    return about, signed("lengths", walk.lengths())


# 5 to 8


def query(e: Explanation, w: Wanted) -> Part:
    found, token = e.inside().attention(w.layer, w.head, w.query), e.inside().token(w.query)
    return {"token": token}, floats(query=found.query, value=found.values[token])


def keys(e: Explanation, w: Wanted) -> Part:
    return {}, signed("keys", e.inside().attention(w.layer, w.head).keys)


def values(e: Explanation, w: Wanted) -> Part:
    return {}, signed("values", e.inside().attention(w.layer, w.head).values)


def heads(e: Explanation, w: Wanted) -> Part:
    found = e.inside().heads(w.layer, w.query)
    arrays = floats(seen=found.seen, lengths=found.written.norm(dim=-1))
    about = {"bias": float(found.bias.norm()), "part": float(found.part.norm())}
    return about, arrays | coded("shares", found.shares, np.uint16)


def residual(e: Explanation, w: Wanted) -> Part:
    return {}, floats(**e.inside().residual(w.query)._asdict())


def units(e: Explanation, w: Wanted) -> Part:
    found = e.inside().units(w.layer, w.query, UNITS)
    about = {"active": found.active, "count": found.count, "units": found.units.tolist()}
    arrays = {"activations": found.activations, "lengths": found.lengths, "maps": found.maps}
    return about, floats(**arrays)


# 9 and 10


def lens(e: Explanation, w: Wanted) -> Part:
    """The rank and the probability of the answer after each layer, and what comes first there."""
    return lens_of(e, e.inside().lens(), e.label_index())


def random_lens(e: Explanation, w: Wanted) -> Part:
    """The same for random blocks, of the answer that they give in the end."""
    logits = e.inside().random_lens()
    return lens_of(e, logits, int(logits[-1].argmax()))


def lens_of(e: Explanation, logits: Tensor, answer: int) -> Part:
    own = logits[:, answer]
    first = logits.argmax(dim=-1).tolist()
    shares = logits.softmax(dim=-1)
    return {
        "answer": e.labels[answer],
        "ranks": ((logits > own[:, None]).sum(dim=-1) + 1).tolist(),
        "shares": shares[:, answer].tolist(),
        "first": [[e.labels[k], float(row[k])] for k, row in zip(first, shares, strict=True)],
    }, {}


def ledger(e: Explanation, w: Wanted) -> Part:
    found = e.inside().ledger(w.label)
    about = {"label": found.label, "name": e.labels[found.label], "total": found.total}
    about |= {"embedding": found.embedding, "constant": found.constant, "logit": found.logit}
    return about, floats(heads=found.heads, biases=found.biases, mlps=found.mlps)


def answer(e: Explanation, w: Wanted) -> Part:
    found, logits = e.inside().answer(w.label), e.inside().logits
    top = [[*one, float(logits[one[2]])] for one in top_labels(e, logits, TOP)]
    about = {"label": found.label, "name": e.labels[found.label], "top": top}
    about |= {"bias": found.bias, "logit": found.logit, "classes": len(logits)}
    about["total"] = float(logits.double().logsumexp(dim=0))
    vectors = {"features": found.features, "weights": found.weights, "products": found.products}
    return about, floats(**vectors)


def back(e: Explanation, w: Wanted) -> Part:
    """What each patch adds to log p of the label."""
    label = e.label_index(w.label)
    ask.forget_classes(e, [label])
    return {"label": label, "name": e.labels[label]}, floats(map=e.contribution(label))


# The model alone

KNOWN: WeakKeyDictionary[Classifier, dict[str, Anatomy]] = WeakKeyDictionary()


def example(e: Explanation, w: Wanted) -> Part:
    """How far and how widely the heads look on one example; the browser takes the mean."""
    classifier = e.classifier
    names = EXAMPLES[kind_of(classifier)]
    name = names[index_of("example", w.example, len(names))]
    known = KNOWN.setdefault(classifier, {})
    if name not in known:
        known[name] = anatomy([classifier.explain(str(example_path(name)))])
    found = known[name]
    about = {"distance": found.uniform_distance, "entropy": found.uniform_entropy}
    return {"uniform": about}, floats(distance=found.distance, entropy=found.entropy)


def position_grid(e: Explanation, w: Wanted) -> Part:
    """The cosine of some positions, spread evenly over the model's own grid, with all."""
    rows, cols = e.config.grid
    most = max(2, math.isqrt(2 * FINE // (rows * cols)))  # small maps along each side
    down, across = (torch.linspace(0, k - 1, min(k, most)).round().long() for k in (rows, cols))
    chosen = (down[:, None] * cols + across).flatten()
    cosines = inside.position_similarity(e.classifier.model, centred=w.centred)[chosen]
    codes = (cosines * 127.5 + 127.5).round().numpy().astype(np.uint8)
    return {"grid": [rows, cols], "shown": [len(down), len(across)]}, {"cosines": codes}


PARTS: dict[str, Callable[[Explanation, Wanted], Part]] = {
    part.__name__: part
    for part in (
        *(
            patch,
            kernel,
            filters,
            embedding,
            positions,
            shuffle,
            norm,
            lengths,
            query,
            keys,
            values,
        ),
        *(heads, residual, units, lens, random_lens, ledger, answer, back, example, position_grid),
    )
}


# How numbers travel


def floats(**tensors: Tensor) -> dict[str, np.ndarray]:
    return {name: tensor.detach().float().cpu().numpy() for name, tensor in tensors.items()}


def signed(name: str, x: Tensor) -> dict[str, np.ndarray]:
    """Numbers of either sign as whole ones, with one factor for all."""
    dtype = np.int16 if x.numel() <= FINE else np.int8
    scale = x.abs().max().clamp_min(torch.finfo(x.dtype).tiny) / np.iinfo(dtype).max
    codes = (x / scale).round().numpy().astype(dtype)
    return {name: codes, f"{name}_scale": scale.numpy().astype(np.float32)[None]}


def top_labels(e: Explanation, logits: Tensor, count: int) -> list[list]:
    """[label, probability, index], best first."""
    return [[p.label, p.probability, p.index] for p in predictions(logits, e.labels, count)]


def inside_part(explanation: Explanation, request: dict) -> dict:
    """One part, for the browser."""
    name = choice("part", request.get("part"), PARTS)
    blob = pack(*PARTS[name](explanation, wanted(request)))
    return {"data": base64.b64encode(blob).decode()}


# The source beside the steps: what is shown, and the lines that matter most by a piece of each

SOURCES = {
    1: [(view.to_tensor, ("/ 255", "(x - mean) / std"))],
    2: [
        (model.PatchEmbed, ("self.proj = nn.Conv2d", "self.proj(x)")),
        (model.UnfoldPatchEmbed, ("F.unfold", "self.proj(patches")),
    ],
    3: [
        (model.VisionTransformer.embed, ("patch_positions  #", "prefix + prefix", "torch.cat([prefix")),
        (model.VisionTransformer.positions, ("resample_positions",)),
    ],
    4: [(model.Block, ("self.norm1 =", "self.norm2 =", "self.norm1(x)", "self.norm2(x)"))],
    5: [(model.Attention, ("self.qkv =", "qkv = self.qkv(x)", "q, k, v ="))],
    6: [(model.attention_weights, ("softmax(dim=-1)",))],
    7: [(model.Attention.forward, ("@ v", "self.proj(x"))],
    8: [
        (model.Block.forward, ("(eq. 2)", "(eq. 3)")),
        (model.MLP, ("self.activation(self.fc1(x))", "self.fc2(x)")),
    ],
    9: [(model.VisionTransformer.forward, ("for block", "x = block(", "self.forward_head(x)"))],
    10: [(model.VisionTransformer.forward_head, ("self.norm(x)", "self.head(self.fc_norm(x))"))],
}  # fmt: skip


def source(thing: object, marks: tuple[str, ...]) -> dict:
    """The source of a class or function, as it is: where it stands, its lines, and which matter."""
    lines, first = inspect.getsourcelines(thing)
    lines = textwrap.dedent("".join(lines)).splitlines()
    marked = [k for k, line in enumerate(lines) if any(mark in line for mark in marks)]
    file = inspect.getmodule(thing).__name__.replace(".", "/") + ".py"
    return {"file": file, "first": first, "lines": lines, "marked": marked}


def sources() -> dict[int, list[dict]]:
    return {step: [source(*one) for one in things] for step, things in SOURCES.items()}


# The component


def facts(explanation: Explanation) -> dict:
    """The model's numbers, for the shapes before and after each step."""
    e, config = explanation, explanation.config
    return {
        "model": e.model_name,
        "classes": len(e.labels),
        "size": [e.view.picture.height, e.view.picture.width],
        "channels": config.channels,
        "patch": list(config.patch_size),
        "grid": list(e.grid),
        "prefix": config.prefix,
        "tokens": e.N,
        "width": config.embed_dim,
        "layers": e.layers,
        "heads": e.heads,
        "units": config.mlp_dim,
        "pool": config.pool,
        "distilled": config.distilled,
        "pre_norm": config.pre_norm,
        "mean": list(e.classifier.preprocess.mean),
        "std": list(e.classifier.preprocess.std),
        "each_with_each": e.grid[0] * e.grid[1] <= MOST_POSITIONS,
        "examples": len(EXAMPLES[kind_of(e.classifier)]),
    }


def make_tab(server: Server) -> gr.HTML:
    """The walk. Its value is None or {"id", "facts"}."""
    css = read_static("inside/walk.css")
    setup = {"css": css, "texts": INSIDE_TEXTS, "sources": sources()}
    return HTML(
        None,
        html_template='<div class="ins"></div>',
        js_on_load=mount_script("inside/index.js", json.dumps(setup, ensure_ascii=False)),
        server_functions=[ask.answering(server, inside_part)],
        elem_id="inside",
        language="en",
    )


def tab_value(server: Server, id: str, explanation: Explanation) -> dict:
    return {"id": id, "facts": facts(explanation)}
