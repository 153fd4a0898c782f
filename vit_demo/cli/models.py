"""vit-demo models: what can be loaded."""

import argparse

from vit_demo.validate import json_text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> None:
    from vit_demo.checkpoints import embedded
    from vit_demo.checkpoints.timm_models import supported_timm

    models = [{"name": name, "source": "embedded"} for name in embedded()]
    for name, labels in supported_timm().items():
        models.append({"name": name, "source": "timm", "labels": labels})
    if args.json:
        print(json_text(models), end="")
        return
    for model in models:
        labels = model.get("labels")
        about = {None: "embedded, needs no network", 0: "maps only"}.get(labels, f"{labels} labels")
        print(f"{model['name']:60} {about}")
