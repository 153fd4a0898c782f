"""Train a ViT on labelled pictures, and measure how good it is.

The recipe is the usual one for small ViTs: AdamW with weight decay on the matrices only, warm-up and
cosine, label smoothing, augmentation that fits the set, gradient clipping, and an average of the
weights over time (EMA), which is what is tested and saved.

All chance is drawn from (seed, epoch, step, group of pictures), never from a state that a crash
could lose or that depends on how many processes share the work. So a run that was killed goes on as
if nothing had happened, and N processes compute what one process computes with the same batch.
"""

import argparse
import csv
import json
import math
import os
import pickle
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from tqdm import tqdm

from vit_demo.checkpoints import Checkpoint, load_checkpoint, save_checkpoint
from vit_demo.data import (
    NAMED,
    WARPS,
    DataError,
    Dataset,
    load_dataset,
    mix,
    normalise,
    recolour,
    warp,
)
from vit_demo.explain import choose_device
from vit_demo.image import Preprocess
from vit_demo.model import VisionTransformer, ViTConfig, resample_positions

SHAPES = {  # --config
    "notes": {"embed_dim": 128, "depth": 3, "heads": 4},
    "mini": {"embed_dim": 192, "depth": 6, "heads": 3},
    "tiny": {"embed_dim": 192, "depth": 12, "heads": 3},
    "small": {"embed_dim": 384, "depth": 12, "heads": 6},
    "base": {"embed_dim": 768, "depth": 12, "heads": 12},
}
COMMON = {
    "optimizer": "adamw",
    "first_weights": "normal",
    "batch_size": 128,
    "lr": 1e-3,
    "weight_decay": 0.05,
    "warmup": 1.0,
    "label_smoothing": 0.1,
    "clip": 1.0,
    "ema": 0.999,
    "randaugment": 0,
    "mixup": 0.0,
    "cutmix": 0.0,
    "mix_share": 0.5,
    "drop_patches": 0.0,
    "whole_epochs": 0,
}
DIGITS = {"config": "notes", "image_size": 28, "patch_size": 7, "channels": 1, "epochs": 10}
SMALL = {"config": "mini", "image_size": 32, "patch_size": 4, "channels": 3, "epochs": 40}
PHOTOS = {"config": "tiny", "image_size": 224, "patch_size": 16, "channels": 3, "epochs": 100}
STRONG = {"warmup": 5.0, "augment": "zoom", "randaugment": 2, "mixup": 0.8, "cutmix": 1.0}
RECIPES = {  # what a set is trained with where no flag says otherwise
    "mnist": COMMON | DIGITS | {"augment": "digits"},
    "fashion-mnist": COMMON | DIGITS | {"augment": "clothes"},
    "cifar10": COMMON | SMALL | {"augment": "photos"},
    "folder": COMMON | PHOTOS | STRONG,
}
FINE_TUNING = {"lr": 1e-4, "epochs": 10, "warmup": 1.0, "image_size": None}  # None: the model's own
STATISTICS = {  # mean and standard deviation of the training pixels
    "mnist": ((0.1307,), (0.3081,)),
    "fashion-mnist": ((0.2860,), (0.3530,)),
    "cifar10": ((0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)),
}
GROUP = 8  # so many pictures share one seed, and with it one draw of RandAugment and mixing
TOP_5_FROM = 11  # classes: with ten, half of all answers are among the top five


def add_train_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("dataset", help=f"{', '.join(NAMED)}, or a folder with one folder of pictures a class")
    add("--out", required=True, type=Path, metavar="DIR", help="folder for the results")
    add("--data", metavar="DIR", help="where the files of a named set are (else: downloaded)")
    add("--resume", action="store_true", help="go on after the last finished epoch in --out")
    add("--init", metavar="NAME", help="fine-tune this model with a new head")
    add("--seed", type=int, default=0, help="another number, another run (0)")
    add("--eval-every", type=int, default=1, metavar="N", help="test after each N epochs (1)")
    add("--compile", action="store_true", help="compile the model: a slow start, faster steps")
    add("--device", default="auto", help="auto, cpu, cuda or mps")
    add("--workers", type=int, default=2, help="threads that read the pictures of folders (2)")

    add = parser.add_argument_group("shape of the model (default: fits the set)").add_argument
    add("--config", choices=SHAPES, help="width, depth and heads by one name")
    for name in ("image-size", "patch-size", "channels", "embed-dim", "depth", "heads"):
        add(f"--{name}", type=int, metavar="N")

    add = parser.add_argument_group("recipe (default: fits the set)").add_argument
    add("--epochs", type=int, metavar="N")
    add("--batch-size", type=int, metavar="N", help="pictures a step, over all processes")
    add("--optimizer", choices=("adamw", "muon"), help="muon: orthogonal steps for the matrices")
    add("--lr", type=float, help="the highest learning rate")
    add("--weight-decay", type=float, help="of the matrices; biases, norms, tokens have none")
    add("--warmup", type=float, metavar="EPOCHS", help="until the learning rate is highest")
    add("--label-smoothing", type=float, metavar="P")
    add("--clip", type=float, metavar="NORM", help="longest gradient")
    add("--ema", type=float, metavar="DECAY", help="of the averaged weights; 0: no average")
    add("--first-weights", choices=("normal", "mimetic"), help="mimetic: like those of trained "
        "ViTs, which helps on small sets")  # fmt: skip
    add("--augment", choices=WARPS, help="how pictures are shifted, zoomed, turned, flipped")
    add("--randaugment", type=int, metavar="N", help="RandAugment with N operations; 0: none")
    add("--mixup", type=float, metavar="ALPHA", help="0: none")
    add("--cutmix", type=float, metavar="ALPHA", help="0: none")
    add("--mix-share", type=float, metavar="P", help="share of the pictures that are mixed")
    add("--drop-patches", type=float, metavar="P", help="share of the patches left out: faster")
    add("--whole-epochs", type=int, metavar="N", help="at the end, N epochs with all patches")


def add_evaluate_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("dataset", nargs="?", help=f"{', '.join(NAMED)}, or a folder with one folder a class")
    add("--model", required=True, metavar="M", help="an embedded model, a timm name, or a file")
    add("--arch", help="timm architecture of a file that does not describe itself")
    add("--labels", metavar="FILE", help="text file with one label a line")
    add("--data", metavar="DIR", help="where the files of a named set are; or the folder itself")
    add("--all", action="store_true", help="every picture of a folder, not only the held-out ones")
    add("--out", type=Path, default=Path("confusion.png"), metavar="PNG",
        help="picture of the confusion matrix (confusion.png)")  # fmt: skip
    add("--batch-size", type=int, default=250, metavar="N")
    add("--device", default="auto", help="auto, cpu, cuda or mps")
    add("--workers", type=int, default=2, help="threads that read the pictures of folders (2)")
    add("--json", action="store_true", help="print JSON only")


# One process or many


@dataclass(frozen=True)
class Team:
    """The processes that train together; alone, this one is rank 0 of 1."""

    rank: int
    world: int
    device: torch.device

    def share(self, items: Tensor) -> Tensor:
        """This process's part of a batch."""
        return items.chunk(self.world)[self.rank]

    def sum(self, x: Tensor) -> Tensor:
        """The sum over all processes, on the CPU."""
        x = x.to(self.device)
        if dist.is_initialized():
            dist.all_reduce(x)
        return x.cpu()

    def told(self, value):
        """What rank 0 says: perhaps only its machine has the file in question."""
        said = [value]
        if dist.is_initialized():
            dist.broadcast_object_list(said, src=0, device=self.device)
        return said[0]

    def wait(self) -> None:
        if dist.is_initialized():
            dist.barrier()


@contextmanager
def team_of(device: str) -> Iterator[Team]:
    """Join the other processes if torchrun started this one; it says so in the environment."""
    world, rank = (int(os.environ.get(*of)) for of in (("WORLD_SIZE", "1"), ("RANK", "0")))
    chosen = choose_device(device)
    if world == 1:
        yield Team(0, 1, chosen)
        return
    if chosen.type == "cuda":
        chosen = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(chosen)
    dist.init_process_group("nccl" if chosen.type == "cuda" else "gloo")
    try:
        yield Team(rank, world, chosen)
    except ValueError:
        if rank == 0:
            raise
        raise SystemExit(2) from None  # all processes find the same mistake; one of them says it
    finally:
        dist.destroy_process_group()


# Training


@dataclass
class Run:
    """Everything that changes while a model is trained, and what it is trained with."""

    args: argparse.Namespace
    team: Team
    train_set: Dataset
    test_set: Dataset
    preprocess: Preprocess
    model: VisionTransformer
    average: VisionTransformer  # the EMA of the weights; this is what is tested and saved
    optimizers: list[torch.optim.Optimizer]
    history: list[dict] = field(default_factory=list)  # one row of metrics.csv for each epoch
    best: float = -1.0  # highest test accuracy so far
    drawn: float = field(default_factory=time.monotonic)  # when the curves were drawn

    @property
    def steps(self) -> int:
        """Steps in one epoch. The pictures left over come in another epoch: the order changes."""
        return len(self.train_set) // self.args.batch_size


def train(args: argparse.Namespace) -> Path:
    """Train as the arguments say; the path of the checkpoint that was best on the test set."""
    settle(args)
    with team_of(args.device) as team:
        run = prepare(args, team)
        forward = wrap(run.model, args.compile, team)
        say = print if team.rank == 0 else lambda *_, **__: None
        say(
            f"{sum(p.numel() for p in run.model.parameters()):,} parameters, "
            f"{len(run.train_set):,} pictures to train on, {len(run.test_set):,} to test, "
            f"{team.world} x {team.device.type}",
            flush=True,
        )
        for epoch in range(len(run.history), args.epochs):
            row = train_epoch(run, forward, epoch)
            if epoch + 1 == args.epochs or (epoch + 1) % args.eval_every == 0:
                result = measure(run.average, run.test_set, run.preprocess, team)
                row |= {"test_loss": result["loss"], "test_accuracy": result["top1"]}
            run.history.append(row)
            say(line_of(row, args.epochs), flush=True)
            if team.rank == 0:
                save(run)
        team.wait()  # nobody leaves before the files are there
        path = args.out / "best.safetensors"
        say(f"best test accuracy {run.best:.2%}: {path}", flush=True)
        return path


def prepare(args: argparse.Namespace, team: Team) -> Run:
    """Everything before the first step, so that every mistake is found there."""
    started = team.told((args.out / "last.pt").exists())
    if started and not args.resume:
        raise ValueError(f"{args.out} holds a run; go on with --resume, or choose another --out.")
    state = team.told(read_state(args.out / "last.pt") if started and team.rank == 0 else None)
    start = load_checkpoint(args.init) if args.init else None
    preprocess = preprocess_of(args, start)
    train_set, test_set = load_in_turn(args, preprocess)
    check_batch_size(args, len(train_set), team.world)
    torch.set_flush_denormal(True)  # numbers next to zero make CPUs slow
    model = first_model(args, start, len(train_set.class_names)).to(team.device)
    average = VisionTransformer(model.config).to(team.device)
    average.load_state_dict(model.state_dict())
    run = Run(args, team, train_set, test_set, preprocess, model, average,
              make_optimizers(model, args))  # fmt: skip
    if state:
        resume(run, state)
    if team.rank == 0:
        args.out.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=args.out).close()  # now is the time to find out
        for part in args.out.glob("tmp*.part*"):  # what a killed run was writing
            part.unlink()
    return run


def train_epoch(run: Run, forward: nn.Module, epoch: int) -> dict:
    """One walk over the training pictures; the metrics of it."""
    args, team, begin = run.args, run.team, time.perf_counter()
    totals = torch.zeros(3, device=team.device)  # loss, right answers, pictures
    run.model.train()
    hidden = True if team.rank else None  # None: no bar where nobody watches
    bar = tqdm(total=run.steps, desc=f"epoch {epoch + 1}", leave=False, disable=hidden, unit="step")
    for step, (images, targets, kept) in enumerate(batches(run, epoch)):
        rate = learning_rate(epoch * run.steps + step, run.steps, args)
        logits = forward(images, keep=kept)
        loss = F.cross_entropy(logits, targets, label_smoothing=args.label_smoothing)
        loss.backward()
        nn.utils.clip_grad_norm_(run.model.parameters(), args.clip)
        for optimizer in run.optimizers:
            for group in optimizer.param_groups:
                group["lr"] = rate
            optimizer.step()
            optimizer.zero_grad()
        follow(run.average, run.model, epoch * run.steps + step, args.ema)
        right = (logits.detach().argmax(1) == targets.argmax(1)).sum()
        totals += torch.stack([loss.detach() * len(images), right, right.new_tensor(len(images))])
        bar.update()
        if step % 10 == 0 or step + 1 == run.steps:  # asking a GPU for numbers makes it wait
            loss, accuracy = (totals[:2] / totals[2]).tolist()
            if not math.isfinite(loss):
                raise ValueError(f"The loss is {loss} in epoch {epoch + 1}; try a smaller --lr.")
            speed = (step + 1) * args.batch_size / (time.perf_counter() - begin)
            bar.set_postfix_str(f"loss {loss:.3f}, accuracy {accuracy:.1%}, {speed:.0f} images/s")
    bar.close()
    loss, right, seen = team.sum(totals).tolist()
    seconds = time.perf_counter() - begin
    return {
        "epoch": epoch + 1,
        "lr": rate,
        "train_loss": loss / seen,
        "train_accuracy": right / seen,
        "images_per_second": seen / seconds,
        "seconds": seconds,
    }


def learning_rate(step: int, steps_in_epoch: int, args: argparse.Namespace) -> float:
    """Up a straight line while it warms, then down half a cosine to zero."""
    warm, total = args.warmup * steps_in_epoch, args.epochs * steps_in_epoch
    if step < warm:
        return args.lr * (step + 1) / (warm + 1)
    return args.lr * 0.5 * (1 + math.cos(math.pi * (step - warm) / max(1, total - warm)))


@torch.no_grad()
def follow(average: nn.Module, model: nn.Module, step: int, decay: float) -> None:
    """Move the averaged weights towards the model's; quickly at first, while those are bad."""
    decay = min(decay, (1 + step) / (10 + step))
    torch._foreach_lerp_(list(average.parameters()), list(model.parameters()), 1 - decay)


# Batches


def seed_of(*key: int) -> int:
    """One number from (seed, epoch, step, ...); keys that are near give numbers that are not."""
    return int(np.random.SeedSequence(key).generate_state(1, np.uint64)[0] >> np.uint64(1))


def generator(*key: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed_of(*key))


def batches(run: Run, epoch: int) -> Iterator[tuple[Tensor, Tensor, Tensor | None]]:
    """The batches of an epoch on the device; the next is made while the model works on this."""
    order = torch.randperm(len(run.train_set), generator=generator(run.args.seed, epoch))
    with ThreadPoolExecutor(1) as ahead:
        coming = ahead.submit(make_batch, run, order, epoch, 0)
        for step in range(run.steps):
            batch = coming.result()
            if step + 1 < run.steps:
                coming = ahead.submit(make_batch, run, order, epoch, step + 1)
            yield tuple(None if t is None else t.to(run.team.device) for t in batch)


def make_batch(run: Run, order: Tensor, epoch: int, step: int):
    """This process's part of a batch: pictures, soft targets, the patches that stay (or None).

    Chance is drawn in groups of pictures, each with a seed of its own, so that it does not matter
    which process a group falls to.
    """
    args, dataset = run.args, run.train_set
    chosen = run.team.share(order[step * args.batch_size : (step + 1) * args.batch_size])
    sizes = [len(group) for group in chosen.split(GROUP)]
    first = run.team.rank * len(sizes)
    chances = [generator(args.seed, epoch, step, first + i) for i in range(len(sizes))]

    def draw(numbers: int) -> Tensor:
        groups = zip(sizes, chances, strict=True)
        return torch.cat([torch.rand(size, numbers, generator=g) for size, g in groups])

    pixels = dataset.batch(chosen)  # (B, C, H, W) uint8
    targets = F.one_hot(dataset.labels[chosen], len(dataset.class_names)).float()
    moves, kept = draw(5), None
    if args.drop_patches and epoch < args.epochs - args.whole_epochs:
        patches = math.prod(run.model.config.grid)
        stay = max(1, round(patches * (1 - args.drop_patches)))
        kept = draw(patches).argsort(1)[:, :stay]
    if args.randaugment:
        groups = zip(pixels.split(GROUP), chances, strict=True)
        pixels = torch.cat([recolour(x, args.randaugment, g) for x, g in groups])
    images = warp(normalise(pixels, run.preprocess), WARPS[args.augment], moves)
    if args.mixup or args.cutmix:
        groups = zip(images.split(GROUP), targets.split(GROUP), chances, strict=True)
        mixed = [mix(x, y, args.mixup, args.cutmix, args.mix_share, g) for x, y, g in groups]
        images, targets = (torch.cat(parts) for parts in zip(*mixed, strict=True))
    return images, targets, kept


# Before the first step


def settle(args: argparse.Namespace) -> None:
    """Fill in what no flag said from the recipe of the set, and refuse what cannot work."""
    recipe = dict(RECIPES.get(args.dataset, RECIPES["folder"]))
    if args.init:
        for name in ("config", "patch_size", "channels", *SHAPES["tiny"], "first_weights"):
            if getattr(args, name) is not None:
                raise ValueError(f"{flag(name)} does not go with --init: the model has its own.")
        recipe |= FINE_TUNING
    else:
        recipe |= SHAPES[args.config or recipe["config"]]
    for name, value in recipe.items():
        if getattr(args, name) is None:
            setattr(args, name, value)
    at_least_1 = ("epochs", "batch_size", "eval_every", "workers")
    at_least_0 = (
        "weight_decay",
        "warmup",
        "randaugment",
        "mixup",
        "cutmix",
        "whole_epochs",
        "seed",
    )
    for names, fine, wanted in (
        (at_least_1, lambda x: x >= 1, "1 or more"),
        (at_least_0, lambda x: x >= 0, "0 or more"),
        (("lr", "clip"), lambda x: 0 < x < math.inf, "more than 0"),
        (("label_smoothing", "ema", "drop_patches"), lambda x: 0 <= x < 1, "from 0 to below 1"),
        (("mix_share",), lambda x: 0 <= x <= 1, "from 0 to 1"),
        (("channels",), lambda x: x in (1, 3), "1 (grey) or 3 (red, green, blue)"),
    ):
        for name in names:
            if not fine(getattr(args, name)):
                raise ValueError(f"{flag(name)} is {getattr(args, name)}; use {wanted}.")


def flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def preprocess_of(args: argparse.Namespace, start: Checkpoint | None) -> Preprocess:
    """What the trained model will do with pictures: exactly what it saw in training."""
    if start is not None:
        size = (args.image_size,) * 2 if args.image_size else start.preprocess.size
        digits = start.preprocess.light_on_dark or args.dataset == "mnist"
        return replace(start.preprocess, size=size, crop_pct=1.0, crop_mode="center",
                       light_on_dark=digits)  # fmt: skip
    mean, std = STATISTICS.get(args.dataset, ((0.5,), (0.5,)))
    if len(mean) != args.channels:
        mean, std = ((sum(v) / len(v),) * args.channels for v in (mean, std))
    return Preprocess((args.image_size,) * 2, mean, std, light_on_dark=args.dataset == "mnist")


def load_in_turn(args: argparse.Namespace, preprocess: Preprocess) -> tuple[Dataset, ...]:
    """The data; on each machine the first process looks (and downloads), then the others."""
    first = os.environ.get("LOCAL_RANK", "0") == "0"
    for turn in (True, False):
        if first == turn:
            sets = load_dataset(args.dataset, args.data, preprocess.size, len(preprocess.mean),
                                workers=args.workers, preprocess=preprocess)  # fmt: skip
        if dist.is_initialized():
            dist.barrier()
    return sets


def check_batch_size(args: argparse.Namespace, pictures: int, world: int) -> None:
    if world == 1:
        args.batch_size = min(args.batch_size, pictures)
    elif args.batch_size % (world * GROUP) or args.batch_size > pictures:
        raise ValueError(
            f"--batch-size {args.batch_size} does not suit {world} processes and {pictures} "
            f"pictures; use a multiple of {world * GROUP} up to {pictures}."
        )


def first_model(
    args: argparse.Namespace, start: Checkpoint | None, classes: int
) -> VisionTransformer:
    """A new model, or a trained one with a new head."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed_of(args.seed))
        if start is not None:
            return with_new_head(start.model, classes, args.image_size)
        model = VisionTransformer(
            ViTConfig(
                image_size=args.image_size,
                patch_size=args.patch_size,
                channels=args.channels,
                embed_dim=args.embed_dim,
                depth=args.depth,
                heads=args.heads,
                num_classes=classes,
            )
        )
        if args.first_weights == "mimetic":
            make_mimetic(model)
        return model


def with_new_head(
    trained: VisionTransformer, classes: int, image_size: int | None
) -> VisionTransformer:
    """The same weights, with a head for other classes and positions for another image size."""
    old = trained.config
    model = VisionTransformer(
        replace(old, num_classes=classes, image_size=image_size or old.image_size)
    )
    weights = {k: v for k, v in trained.state_dict().items() if not k.startswith("head")}
    P = 0 if old.no_embed_class else old.prefix_tokens
    prefix, patches = weights["pos_embed"][:, :P], weights["pos_embed"][:, P:]
    patches = resample_positions(patches, old.grid, model.config.grid)
    weights["pos_embed"] = torch.cat([prefix, patches], dim=1)
    model.load_state_dict(weights, strict=False)
    return model


@torch.no_grad()
def make_mimetic(model: VisionTransformer) -> None:
    """First weights that look like those of trained ViTs (Trockman and Kolter 2023).

    There, queries and keys agree (W_q^T W_k is near the identity: like looks at like), projection
    and values nearly undo the token (W_proj W_v is near minus the identity), and positions are
    smooth. What a model starts with it need not learn from too few pictures.
    """
    config = model.config
    D, d = config.embed_dim, config.embed_dim // config.heads

    def factors(noise: float, identity: float) -> tuple[Tensor, Tensor]:
        """Two matrices whose product is the identity (times a factor) plus noise."""
        product = noise * torch.randn(D, D) / D**0.5 + identity * torch.eye(D)
        U, S, V = torch.linalg.svd(product)
        return U * S.sqrt(), S.sqrt()[:, None] * V

    for block in model.blocks:
        q, k, v = block.attn.qkv.weight.chunk(3)  # each (D, D), the rows of one head after another
        for head in range(config.heads):
            rows = slice(head * d, (head + 1) * d)
            left, right = factors(0.7, 0.7)
            q[rows], k[rows] = left.T[:d], right[:d]  # the d strongest directions
        left, right = factors(0.4, -0.4)
        block.attn.proj.weight.copy_(left)
        v.copy_(right)
    patch_embed = model.patch_embed.proj.weight
    nn.init.normal_(patch_embed, std=patch_embed[0].numel() ** -0.5)
    P = 0 if config.no_embed_class else config.prefix_tokens
    model.pos_embed[:, P:] = 0.5 * sines(*config.grid, D)


def sines(rows: int, cols: int, D: int) -> Tensor:
    """Positions (rows * cols, D): sines and cosines of column and row, ever slower."""
    frequencies = 10000 ** -(torch.arange(math.ceil(D / 4)) / (D / 4))
    row, col = torch.meshgrid(torch.arange(rows), torch.arange(cols), indexing="ij")
    angles = [axis.flatten()[:, None] * frequencies for axis in (col, row)]
    return torch.cat([wave(a) for a in angles for wave in (torch.sin, torch.cos)], dim=1)[:, :D]


def make_optimizers(
    model: VisionTransformer, args: argparse.Namespace
) -> list[torch.optim.Optimizer]:
    """AdamW for everything; or Muon for the matrices of the blocks, and AdamW for the rest."""
    groups = {"decay": [], "no decay": [], "muon": []}
    for name, p in model.named_parameters():
        if p.ndim == 1 or name in ("pos_embed", *model.config.prefix):
            groups["no decay"].append(p)
        elif args.optimizer == "muon" and name.startswith("blocks."):
            groups["muon"].append(p)
        else:
            groups["decay"].append(p)
    adamw = [
        {"params": groups["decay"], "weight_decay": args.weight_decay},
        {"params": groups["no decay"], "weight_decay": 0.0},
    ]
    fused = next(model.parameters()).device.type in ("cpu", "cuda")
    optimizers = [torch.optim.AdamW(adamw, lr=args.lr, betas=(0.9, 0.98), fused=fused)]
    if groups["muon"]:
        optimizers.append(Muon(groups["muon"], args.lr, args.weight_decay))
    return optimizers


class Muon(torch.optim.Optimizer):
    """Momentum, made orthogonal: every direction of a matrix moves equally far (Jordan 2024).

    Steps are scaled to the usual size of AdamW's, so that one learning rate and one weight decay
    serve both (Liu et al. 2025). torch's own Muon works in bfloat16, which many CPUs only emulate.
    """

    def __init__(self, params, lr: float, weight_decay: float, momentum: float = 0.95):
        super().__init__(params, {"lr": lr, "weight_decay": weight_decay, "momentum": momentum})

    @torch.no_grad()
    def step(self) -> None:
        for group in self.param_groups:
            lr, momentum = group["lr"], group["momentum"]
            for p in group["params"]:
                state = self.state[p]
                if not state:
                    state["momentum"] = torch.zeros_like(p)
                state["momentum"].lerp_(p.grad, 1 - momentum)
                direction = orthogonal(p.grad.lerp(state["momentum"], momentum))
                p.mul_(1 - lr * group["weight_decay"])
                p.add_(direction, alpha=-0.2 * max(p.shape) ** 0.5 * lr)


def orthogonal(G: Tensor) -> Tensor:
    """About U V^T, where G = U S V^T: five Newton-Schulz steps bring all of S near 1."""
    tall = G.shape[0] > G.shape[1]
    X = G.T if tall else G
    X = X / (X.norm() + 1e-7)
    for _ in range(5):
        A = X @ X.T
        X = 3.4445 * X + (-4.7750 * A + 2.0315 * A @ A) @ X
    return X.T if tall else X


def wrap(model: VisionTransformer, compiled: bool, team: Team) -> nn.Module:
    """What the forward pass goes through: the model, perhaps compiled, perhaps one of many."""
    if compiled:
        try:
            torch.compile(lambda x: x + 1)(
                torch.ones(2, device=team.device)
            )  # is there a compiler?
            model = torch.compile(model)
        except Exception as error:  # noqa: BLE001 - of any kind: training works without
            reason = (str(error).strip() or type(error).__name__).splitlines()[0]
            tqdm.write(f"--compile does not work here, going on without ({reason})", sys.stderr)
    if team.world > 1:
        devices = [team.device] if team.device.type == "cuda" else None
        model = DistributedDataParallel(model, device_ids=devices)
    return model


# What a run leaves behind


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Write beside, then rename: there is the old file or the new one, never half of one."""
    handle, part = tempfile.mkstemp(dir=path.parent, suffix=".part" + path.suffix)
    os.close(handle)
    try:
        yield Path(part)
        os.chmod(part, 0o644)
        os.replace(part, path)
    except BaseException:
        os.unlink(part)
        raise


def save(run: Run) -> None:
    """After an epoch: checkpoints, metrics, curves, and last of all what --resume starts from.

    best.safetensors is chosen by its accuracy on the test pictures, which flatters that number a
    little; last.safetensors is not chosen by anything.
    """
    out, score = run.args.out, run.history[-1].get("test_accuracy")
    if score is not None:
        about = (run.average, run.train_set.class_names, run.preprocess)
        save_checkpoint(out / "last.safetensors", *about)
        if score > run.best:
            save_checkpoint(out / "best.safetensors", *about)
            run.best = score
    with whole_file(out / "metrics.csv") as part, open(part, "w", newline="") as file:
        names = ("epoch", "lr", "train_loss", "train_accuracy", "test_loss", "test_accuracy",
                 "images_per_second", "seconds")  # fmt: skip
        table = csv.DictWriter(file, names)
        table.writeheader()
        table.writerows(run.history)
    now, last = time.monotonic(), len(run.history) == run.args.epochs
    if last or now - run.drawn > 10:  # with short epochs drawing would cost more than training
        draw_curves(out / "curves.png", run.history)
        run.drawn = now
    state = {
        "settings": settings(run.args),
        "model": run.model.state_dict(),
        "average": run.average.state_dict(),
        "optimizers": [optimizer.state_dict() for optimizer in run.optimizers],
        "history": run.history,
        "best": run.best,
    }
    with whole_file(out / "last.pt") as part:
        torch.save(state, part)


def settings(args: argparse.Namespace) -> dict:
    """The arguments that decide the result; not where it goes, nor how fast it comes."""
    free = ("out", "data", "resume", "eval_every", "device", "workers", "compile", "run")
    return {name: value for name, value in vars(args).items() if name not in free}


def read_state(path: Path) -> dict:
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except (RuntimeError, pickle.UnpicklingError, EOFError) as error:
        raise ValueError(f"{path} is damaged; remove it to start again.") from error


def resume(run: Run, state: dict) -> None:
    """Go back to the end of the last epoch that was saved."""
    now, then = settings(run.args), state["settings"]
    differ = [f"{flag(name)} {then.get(name)}" for name in now if now[name] != then.get(name)]
    if differ:
        raise ValueError(f"The run in {run.args.out} began with {', '.join(differ)}; "
                         "resume it with the same, or choose another --out.")  # fmt: skip
    run.model.load_state_dict(state["model"])
    run.average.load_state_dict(state["average"])
    for optimizer, saved in zip(run.optimizers, state["optimizers"], strict=True):
        optimizer.load_state_dict(saved)
    run.history, run.best = state["history"], state["best"]


def line_of(row: dict, epochs: int) -> str:
    line = f"epoch {row['epoch']}/{epochs}: loss {row['train_loss']:.4f}, "
    line += f"training accuracy {row['train_accuracy']:.2%}"
    if "test_accuracy" in row:
        line += f", test loss {row['test_loss']:.4f}, test accuracy {row['test_accuracy']:.2%}"
    return line + f", {row['images_per_second']:.0f} images/s, {row['seconds']:.0f} s"


def draw_curves(path: Path, history: list[dict]) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.5), layout="constrained")
    names = {"train": "training (augmented)", "test": "test (averaged weights)"}
    for axes, what in zip(figure.subplots(1, 2), ("loss", "accuracy"), strict=True):
        for part, name in names.items():
            rows = [row for row in history if f"{part}_{what}" in row]
            values = [row[f"{part}_{what}"] for row in rows]
            axes.plot([row["epoch"] for row in rows], values, "o-", markersize=3, label=name)
        axes.set(xlabel="epoch", title=what)
        axes.grid(alpha=0.3)
        axes.legend()
    with whole_file(path) as part:
        figure.savefig(part, dpi=120)


# Evaluation


@torch.inference_mode()
def measure(
    model: VisionTransformer,
    dataset: Dataset,
    preprocess: Preprocess,
    team: Team,
    batch_size: int = 250,
    label_of: Tensor | None = None,
) -> dict:
    """Loss, top-1, top-5 and confusion (true label, answer) over a whole set, in equal shares.

    `label_of` gives the model's label for each class of the set, where they are not the same.
    """
    model.eval()
    C = model.config.num_classes
    labels = dataset.labels if label_of is None else label_of[dataset.labels]
    confusion, sums = torch.zeros(C * C), torch.zeros(2)  # loss, right within five
    for indices in torch.arange(team.rank, len(dataset), team.world).split(batch_size):
        images = normalise(dataset.batch(indices), preprocess).to(team.device)
        logits, truth = model(images).float().cpu(), labels[indices]
        confusion += torch.bincount(truth * C + logits.argmax(1), minlength=C * C)
        five = (logits.topk(min(5, C)).indices == truth[:, None]).any(1).sum()
        sums += torch.stack([F.cross_entropy(logits, truth, reduction="sum"), five])
    confusion = team.sum(confusion).reshape(C, C).long()
    loss, five = team.sum(sums).tolist()
    right, M = confusion.diag().sum().item(), len(dataset)
    return {"loss": loss / M, "top1": right / M, "top5": five / M, "confusion": confusion}


def evaluate(args: argparse.Namespace) -> dict:
    """Accuracy of a model on a set; printed, returned, and the confusion matrix drawn."""
    checkpoint = load_checkpoint(args.model, args.arch, args.labels)
    name = args.dataset or args.data
    if name is None:
        raise DataError(f"Say on what: a folder with one folder a class, or {', '.join(NAMED)}.")
    if not checkpoint.labels:
        raise DataError(f"{checkpoint.name} has no labels; choose a model that classifies.")
    if args.batch_size < 1 or args.workers < 1:
        raise ValueError("--batch-size and --workers must be at least 1.")
    preprocess = checkpoint.preprocess
    part = "all" if args.all and name not in NAMED else "test"
    (dataset,) = load_dataset(
        name, args.data, preprocess.size, len(preprocess.mean),
        workers=args.workers, preprocess=preprocess, parts=(part,),
    )  # fmt: skip
    unknown = [c for c in dataset.class_names if c not in checkpoint.labels]
    if unknown:
        raise DataError(
            f"{checkpoint.name} has no label {unknown[0]!r}; name the class folders as its labels: "
            f"{', '.join(checkpoint.labels[:10])}{', ...' if len(checkpoint.labels) > 10 else '.'}"
        )
    label_of = torch.tensor([checkpoint.labels.index(c) for c in dataset.class_names])
    team = Team(0, 1, choose_device(args.device))
    measured = measure(checkpoint.model.to(team.device), dataset, preprocess, team,
                       args.batch_size, label_of)  # fmt: skip
    confusion = measured["confusion"][label_of]  # the rows of this set's classes
    draw_confusion(args.out, confusion, dataset.class_names, checkpoint.labels)
    right = confusion[torch.arange(len(label_of)), label_of].double() / confusion.sum(1)
    result = {
        "model": checkpoint.name,
        "dataset": dataset.name,
        "pictures": len(dataset),
        "loss": measured["loss"],
        "top1": measured["top1"],
        "top5": measured["top5"] if len(checkpoint.labels) >= TOP_5_FROM else None,
        "per_class": dict(zip(dataset.class_names, right.tolist(), strict=True)),
        "confusion": str(args.out),
    }
    if args.json:
        print(json.dumps(result))
        return result
    print(f"{result['model']} on {result['pictures']:,} pictures of {result['dataset']}")
    print(f"top-1 {result['top1']:.2%}")
    if result["top5"] is not None:
        print(f"top-5 {result['top5']:.2%}")
    width = max(len(name) for name in result["per_class"])
    for name, share in result["per_class"].items():
        print(f"  {name:<{width}}  {share:.2%}")
    print(f"confusion matrix: {args.out}")
    return result


def draw_confusion(path: Path, confusion: Tensor, rows: list[str], columns: list[str]) -> None:
    """True classes down, answers across, as shares of each true class; only answers that occur."""
    from matplotlib.figure import Figure

    occurs = [i for i, name in enumerate(columns) if confusion[:, i].any() or name in rows]
    shares = (confusion / confusion.sum(1, keepdim=True))[:, occurs]
    figure = Figure(figsize=(7.5, 6.5), layout="constrained")
    axes = figure.subplots()
    picture = axes.imshow(shares.numpy(), cmap="cividis", vmin=0, vmax=1)
    axes.set(xlabel="answer", ylabel="true class")
    if len(occurs) <= 40:
        axes.set_xticks(range(len(occurs)), [columns[i] for i in occurs], rotation=90)
        axes.set_yticks(range(len(rows)), rows)
    if len(occurs) <= 12:
        for row, column in np.ndindex(*shares.shape):
            count, share = int(confusion[row, occurs[column]]), shares[row, column]
            colour = "black" if share > 0.5 else "white"
            axes.text(column, row, count, ha="center", va="center", color=colour, fontsize=8)
    figure.colorbar(picture, label="share of the true class")
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as part:
        figure.savefig(part, dpi=120, format="png", bbox_inches="tight")
