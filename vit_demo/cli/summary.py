"""vit-demo summary: the layers of a model, with shapes and parameters."""

import argparse

from vit_demo.cli import flags


def add_arguments(parser: argparse.ArgumentParser) -> None:
    flags.add_model(parser)


def run(args: argparse.Namespace) -> None:
    from torchinfo import summary

    model = flags.load_classifier(args).model
    config = model.config
    columns = ("input_size", "output_size", "num_params")
    shape = (1, config.channels, *config.image_size)
    print(summary(model, input_size=shape, depth=4, col_names=columns, verbose=0))
