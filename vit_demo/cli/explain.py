"""vit-demo explain: one picture's maps as pictures and numbers, or a report on a whole folder."""

import argparse
import glob
import os
from dataclasses import asdict, replace

from vit_demo.cli import flags
from vit_demo.map_settings import CHOICES, CLASS_MAPS, FITS, FUSIONS, PLAIN_MAPS
from vit_demo.validate import json_text

OF_ONE = ("map", "layer", "head", "query", "minus", "direction", "part", "fusion", "residual",
          "discard", "below", "picture", "opacity", "smooth", "scale")  # fmt: skip
OF_MANY = ("maps", "resume", "batch_size", "workers")
BELONGS = {"direction": "attention", "part": "head_rollout"}  # to these maps
MOST_ERRORS = 10  # that are printed; the report has them all


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "images",
        nargs="+",
        metavar="IMAGE",
        help="a picture; or a folder, a glob, several pictures",
    )
    flags.add_model(parser)
    flags.add_out(parser)
    add("--fit", default="crop", choices=FITS, help=flags.FIT_HELP)
    add("--json", action="store_true", help="print the numbers as JSON")
    add("--colours", default="inferno", metavar="NAME", help="inferno, viridis, ...")
    add("--label", type=flags.label, help="also show what speaks for this label (name or number)")
    add("--method", choices=CLASS_MAPS, help=f"the map of --label, or of the answer ({CLASS_MAPS[0]}); "
        "of a folder: the map of each answer (rollout)")  # fmt: skip

    add = parser.add_argument_group("one picture").add_argument
    add("--map", choices=(*PLAIN_MAPS, "random"),
        help="the map of map.png (--head: head_rollout, otherwise rollout)")  # fmt: skip
    add("--layer", type=int, default=-1, help="0 is the first, -1 the last (-1)")
    add("--head", type=head, default=None, metavar="all|N", help="0 is the first (all)")
    add("--query", type=flags.query, metavar="ROW,COL", help="ask this patch, not the answer")
    add("--minus", type=flags.label, metavar="LABEL",
        help="also show what speaks for --label rather than for this one")  # fmt: skip
    add("--direction", default="from", choices=CHOICES["direction"],
        help="--map attention: from the patch or the answer, or to it (from)")  # fmt: skip
    add("--part", default="whole", choices=CHOICES["part"],
        help="--map head_rollout: all of it, or what is special about the head (whole)")  # fmt: skip
    add("--fusion", default="mean", choices=FUSIONS, help="over heads")
    add("--residual", type=float, default=0.5, help="share passed on unchanged (0.5)")
    add("--discard", type=float, default=0.0, help="share of weak links dropped (0)")
    add("--below", default="mean", choices=("mean", "same"),
        help="below a head: the mean of the heads, or the head of the same number")  # fmt: skip
    add("--picture", default="own", choices=CHOICES["picture"],
        help="under --map: yours, or as the model saw it (own)")  # fmt: skip
    add("--opacity", type=float, default=0.55, help="of --map over the picture (0.55)")
    add("--smooth", action="store_true", help="interpolate between the patches")
    add("--scale", default="shared", choices=("shared", "own"),
        help="colours of the wall: one scale for all heads, or one for each")  # fmt: skip

    add = parser.add_argument_group("a folder, a glob, several pictures").add_argument
    add("--maps", action="store_true", help="also write the numbers of every picture's maps")
    add("--resume", action="store_true", help="go on with the run in --out")
    add("--batch-size", type=int, metavar="N", help="pictures in one pass (8; on a GPU 64)")
    add("--workers", type=int, metavar="N", help="threads that work side by side (one a core)")
    parser.set_defaults(usual={name: parser.get_default(name) for name in (*OF_ONE, *OF_MANY)})


def head(text: str) -> int | None:
    return None if text == "all" else int(text)


def run(args: argparse.Namespace) -> int | None:
    first = args.images[0]
    many = len(args.images) > 1 or os.path.isdir(first)
    many = many or (not os.path.lexists(first) and glob.has_magic(first))
    for name in OF_ONE if many else OF_MANY:
        if getattr(args, name) != args.usual[name]:
            flag, goes = name.replace("_", "-"), "one picture" if many else "a folder"
            raise ValueError(f"--{flag} goes with {goes}; leave it out, or give {goes}.")
    return explain_many(args) if many else explain_one(args)


def explain_many(args: argparse.Namespace) -> int:
    """Print what came out; 2 if a file could not be used."""
    from vit_demo.distributed import join_processes
    from vit_demo.folders import explain_folder

    method = args.method or ("rollout" if args.label is None else CLASS_MAPS[0])
    with join_processes(args.device) as group:
        args.device = str(group.device)
        summary = explain_folder(
            flags.load_classifier(args),
            args.images,
            args.out,
            map=method,
            label=args.label,
            fit=args.fit,
            maps=args.maps,
            colours=args.colours,
            resume=args.resume,
            batch_size=args.batch_size,
            workers=args.workers,
            group=group,
        )
    if summary is None:  # another process tells
        return 0
    errors = list(summary.errors.items())
    for name, error in errors[:MOST_ERRORS]:
        flags.warn(f"{name}: {error}")
    if len(errors) > MOST_ERRORS:
        flags.warn(f"{len(errors) - MOST_ERRORS:,} more could not be used; the report names them")
    if args.json:
        print(json_text(asdict(summary) | {"out": str(args.out)}), end="")
    else:
        print("\n".join(summary.lines))
        print(f"{args.out}: report.html, answers.csv{', maps' if args.maps else ''}")
    return 2 if errors else 0


def explain_one(args: argparse.Namespace) -> None:
    from vit_demo import export, render
    from vit_demo.files import make_folder
    from vit_demo.map_settings import MapSettings, unknown_colours
    from vit_demo.render import COLOUR_MAPS

    (image,), method = args.images, args.method or CLASS_MAPS[0]
    if args.minus is not None and args.label is None:
        raise ValueError("--minus needs --label: say for which label rather than this one.")
    if args.colours not in COLOUR_MAPS:
        raise unknown_colours(args.colours)
    classifier = flags.load_classifier(args)
    explanation = classifier.explain(image, args.fit)
    named = args.label is not None or args.method is not None  # a method alone: why the answer?
    label = explanation.label_index(args.label) if named else None
    minus = None if args.minus is None else explanation.label_index(args.minus)
    if minus is not None and minus == label:
        raise ValueError("--label and --minus name the same label; compare two different ones.")
    layer = explanation.layer_index(args.layer)
    # The overview is that of rollout, in which --head picks the tiles.
    one_head = args.head is not None
    map = args.map or (method if label is not None else "head_rollout" if one_head else "rollout")
    for name, goes in BELONGS.items():
        if getattr(args, name) != args.usual[name] and map != goes:
            raise ValueError(f"--{name} {getattr(args, name)} goes with --map {goes}.")
    settings = MapSettings(
        map=map,
        layer=layer,
        head=args.head if one_head and map != "rollout" else args.fusion,
        query=args.query,
        direction=args.direction,
        below=args.below,
        part=args.part,
        residual=args.residual,
        discard=args.discard,
        picture=args.picture,
        opacity=args.opacity,
        smooth=args.smooth,
        colours=args.colours,
        label=label,
        minus=minus,
    )
    arrays = export.arrays_of(explanation, settings)
    heads = arrays["head_rollouts"][layer]
    which = range(len(heads)) if not one_head else [explanation.head_index(args.head)]
    query = export.resolved(explanation, settings).query
    asker = "the answer" if query is None else f"patch {query[0] + 1}, {query[1] + 1}"
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
    if args.map or one_head:
        pictures["map.png"] = export.map_picture(explanation, settings)
    about = export.description(explanation, settings, image)
    if label is not None:
        wanted = replace(settings, map=method, minus=None)
        arrays[method] = export.shown_map(explanation, wanted).numpy()
        of = about[f"{method}_of"] = {"label": explanation.labels[label], "index": label}
        if method == "contribution":
            of["prefix"] = export.on_prefix(explanation, wanted)
        drawn = export.class_map_picture(explanation, wanted, arrays[method])
        pictures[f"{method}.png"] = drawn
    if minus is not None:
        wanted = replace(wanted, minus=minus)
        arrays["difference"] = export.shown_map(explanation, wanted).numpy()
        drawn = export.class_map_picture(explanation, wanted, arrays["difference"])
        pictures["difference.png"] = drawn
        about["minus"] = {"label": explanation.labels[minus], "index": minus}

    make_folder(args.out)
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
