"""How fast is the training loop, beside a bare loop of timm's own ViT of the same shape?

    python -m benchmarks.train [--config mini] [--batch-size 128] [--rounds 7]

Both train in this process, a few steps each in turn, so that whatever else the machine does slows
both. Ours does everything that `vit-demo train cifar10` does: augmentation, clipping,
averaged weights, metrics. timm's only walks forward, back and one step, on pictures that are ready.
"""

import argparse
import statistics
import time

import timm.models.vision_transformer as reference
import torch
import torch.nn.functional as F

from vit_demo.distributed import ProcessGroup
from vit_demo.training.config import SHAPES, TrainConfig, complete
from vit_demo.training.data import Dataset, preprocess_of
from vit_demo.training.first_weights import first_model
from vit_demo.training.loop import choose_attention, train_epoch
from vit_demo.training.optimizers import make_optimizers
from vit_demo.training.run import Run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--config", choices=SHAPES, default="mini")
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--steps", type=int, default=3, help="in one round of each")
    parser.add_argument("--rounds", type=int, default=7)
    args = parser.parse_args()
    torch.manual_seed(0)
    ours, theirs = our_round(args), timm_round(args)
    ours(), theirs()  # warm up
    speeds = {"ours": [], "timm": []}
    for _ in range(args.rounds):
        for name, one_round in (("ours", ours), ("timm", theirs)):
            start = time.perf_counter()
            one_round()
            speeds[name].append(args.batch_size * args.steps / (time.perf_counter() - start))
    ratio = statistics.median(a / b for a, b in zip(*speeds.values(), strict=True))
    for name, values in speeds.items():
        print(f"{name}: {statistics.median(values):.0f} images/s")
    print(f"ratio: {ratio:.3f}")


def our_round(args: argparse.Namespace):
    """One short epoch of the real loop, on pictures of noise."""
    config = complete(
        TrainConfig("cifar10", "nowhere", config=args.config, batch_size=args.batch_size)
    )
    count = args.batch_size * args.steps
    noise = torch.randint(0, 256, (count, 3, 32, 32), dtype=torch.uint8)
    labels, names = torch.randint(0, 10, (count,)), [str(i) for i in range(10)]
    dataset = Dataset("noise", labels, names, (32, 32), 3, noise)
    model = first_model(config, None, names)
    choose_attention(model, config)
    run = Run(
        config,
        ProcessGroup(0, 1, torch.device("cpu")),
        train_set=dataset,
        test_set=dataset,
        preprocess=preprocess_of(config, None),
        model=model,
        average=first_model(config, None, names),
        optimizers=make_optimizers(model, config),
    )
    return lambda: train_epoch(run, model, epoch=5)


def timm_round(args: argparse.Namespace):
    shape = SHAPES[args.config]
    model = reference.VisionTransformer(
        img_size=32,
        patch_size=4,
        num_classes=10,
        embed_dim=shape["embed_dim"],
        depth=shape["depth"],
        num_heads=shape["heads"],
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    images = torch.randn(args.batch_size, 3, 32, 32)
    labels = torch.randint(0, 10, (args.batch_size,))

    def one_round() -> None:
        for _ in range(args.steps):
            loss = F.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()

    return one_round


if __name__ == "__main__":
    main()
