"""vit-demo explain: pictures and numbers of one picture's maps."""

import argparse
from dataclasses import replace

from vit_demo.cli import flags
from vit_demo.map_settings import CLASS_MAPS, FUSIONS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    flags.add_picture(parser)
    add = parser.add_argument
    add("--layer", type=int, default=-1, help="0 is the first, -1 the last (-1)")
    add("--head", type=head, default=None, metavar="all|N", help="0 is the first (all)")
    add("--query", type=flags.query, metavar="ROW,COL", help="ask this patch, not the answer")
    add("--label", type=flags.label, help="also show what speaks for this label (name or number)")
    add("--minus", type=flags.label, metavar="LABEL",
        help="also show what speaks for --label rather than for this one")  # fmt: skip
    add("--method", default=CLASS_MAPS[0], choices=CLASS_MAPS,
        help=f"the map of --label ({CLASS_MAPS[0]})")  # fmt: skip
    add("--fusion", default="mean", choices=FUSIONS, help="over heads")
    add("--residual", type=float, default=0.5, help="share passed on unchanged (0.5)")
    add("--discard", type=float, default=0.0, help="share of weak links dropped (0)")
    add("--below", default="mean", choices=("mean", "same"),
        help="below a head: the mean of the heads, or the head of the same number")  # fmt: skip
    add("--colours", default="inferno", metavar="NAME", help="inferno, viridis, ...")
    add("--smooth", action="store_true", help="interpolate between the patches")
    add("--scale", default="shared", choices=("shared", "own"),
        help="colours of the wall: one scale for all heads, or one for each")  # fmt: skip


def head(text: str) -> int | None:
    return None if text == "all" else int(text)


def run(args: argparse.Namespace) -> None:
    from vit_demo import export, render
    from vit_demo.map_settings import MapSettings, unknown_colours
    from vit_demo.render import COLOUR_MAPS

    if args.minus is not None and args.label is None:
        raise ValueError("--minus needs --label: say for which label rather than this one.")
    if args.colours not in COLOUR_MAPS:
        raise unknown_colours(args.colours)
    classifier = flags.load_classifier(args)
    explanation = classifier.explain(args.image, args.fit)
    label = None if args.label is None else explanation.label_index(args.label)
    minus = None if args.minus is None else explanation.label_index(args.minus)
    if minus is not None and minus == label:
        raise ValueError("--label and --minus name the same label; compare two different ones.")
    layer = explanation.layer_index(args.layer)
    # Overview and numbers are those of rollout; --fusion fuses the heads, --head picks the tiles.
    settings = MapSettings(
        map="rollout",
        layer=layer,
        head=args.fusion,
        query=args.query,
        below=args.below,
        residual=args.residual,
        discard=args.discard,
    )
    arrays = export.arrays_of(explanation, settings)
    heads = arrays["head_rollouts"][layer]
    which = range(len(heads)) if args.head is None else [explanation.head_index(args.head)]
    asker = "the answer" if args.query is None else "patch {},{}".format(*args.query)
    picture, colours = explanation.view.picture, {"colour_map": args.colours, "smooth": args.smooth}
    wall = {"shared": args.scale == "shared", "colour_map": args.colours}
    pictures = {
        "overview.png": render.figure(
            explanation,
            arrays["rollout"],
            {index: heads[index] for index in which},
            title=f"attention rollout of {asker}",
            heads_title=f"head rollouts of layer {layer + 1} of {explanation.layers}",
            **colours,
        ),
        "heads.png": render.wall(arrays["head_rollouts"], **wall),
        "rollout.png": render.overlay(picture, arrays["rollout"], **colours),
    }
    about = export.description(explanation, settings, args.image)
    about["settings"]["head"] = args.head
    if label is not None:
        looks = {"colours": args.colours, "smooth": args.smooth}
        wanted = replace(settings, map=args.method, label=label, **looks)
        arrays[args.method] = export.shown_map(explanation, wanted).numpy()
        of = about[f"{args.method}_of"] = {"label": explanation.labels[label], "index": label}
        if args.method == "contribution":
            of["prefix"] = export.prefix_contribution(explanation, wanted)
        drawn = export.class_map_picture(explanation, wanted, arrays[args.method])
        pictures[f"{args.method}.png"] = drawn
    if minus is not None:
        wanted = replace(wanted, minus=minus)
        arrays["difference"] = export.shown_map(explanation, wanted).numpy()
        drawn = export.class_map_picture(explanation, wanted, arrays["difference"])
        pictures["difference.png"] = drawn
        about["minus"] = {"label": explanation.labels[minus], "index": minus}

    args.out.mkdir(parents=True, exist_ok=True)
    for name, drawn in pictures.items():
        drawn.save(args.out / name)
    (args.out / "maps.npz").write_bytes(export.npz_bytes(arrays))
    text = export.json_text(about)
    (args.out / "explanation.json").write_text(text, encoding="utf-8")
    if args.json:
        print(text, end="")
        return
    if explanation.labels:
        for p in explanation.top(10):
            print(f"  {p.probability:7.2%}  {p.label}")
    print(f"{args.out}: {', '.join([*pictures, 'maps.npz', 'explanation.json'])}")
