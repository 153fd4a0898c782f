"""Train a ViT on labelled pictures.

The recipe is the usual one for small ViTs: AdamW with weight decay on the matrices only, warm-up and
cosine, label smoothing, augmentation that fits the set, gradient clipping, and an average of the
weights over time (EMA), which is what is tested and saved.

All chance is drawn from (seed, epoch, step, group of pictures), never from a state that a crash
could lose or that depends on how many processes share the work. So a run that was killed goes on as
if nothing had happened, and N processes compute what one process computes with the same batch.
"""

import argparse
import math
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from tqdm import tqdm

from vit_demo.augment import WARPS, generator, mix, recolour, warp
from vit_demo.checkpoints import load_checkpoint
from vit_demo.data import Dataset, load_dataset, normalise
from vit_demo.evaluate import measure
from vit_demo.first_weights import first_model
from vit_demo.model import VisionTransformer
from vit_demo.optim import follow, learning_rate, make_optimizers
from vit_demo.recipes import preprocess_of, settle
from vit_demo.runs import Run, line_of, read_state, resume, save
from vit_demo.team import Team, team_of
from vit_demo.view import Preprocess

GROUP = 8  # so many pictures share one seed, and with it one draw of RandAugment and mixing


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


# Before the first step


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


# Batches


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
