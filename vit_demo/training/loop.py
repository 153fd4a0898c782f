"""Train a ViT on labelled pictures.

The recipe is the usual one for small ViTs: AdamW with weight decay on the matrices only, warm-up and
cosine, label smoothing, augmentation that fits the set, gradient clipping, and an average of the
weights over time (EMA), which is what is tested and saved.

All random numbers come from (seed, epoch, step, group of pictures), never from a state that a crash
could lose or that depends on how many processes share the work. So a run that was killed goes on as
if nothing had happened, and N processes compute what one process computes with the same batch.
"""

import math
import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from tqdm import tqdm

from vit_demo.checkpoints import load_checkpoint
from vit_demo.distributed import ProcessGroup, in_precision, join_processes
from vit_demo.files import locked, make_folder
from vit_demo.model import VisionTransformer, patch_grid
from vit_demo.training.augment import (
    DRAWS,
    WARPS,
    generator,
    mix,
    mix_patches,
    recolour,
    seed_of,
    warp,
)
from vit_demo.training.config import TrainConfig, complete
from vit_demo.training.data import Dataset, load_dataset, normalise, preprocess_of
from vit_demo.training.evaluation import measure
from vit_demo.training.first_weights import first_model
from vit_demo.training.optimizers import learning_rate, make_optimizers, update_average
from vit_demo.training.run import Run, line_of, read_state, resume, save
from vit_demo.training.snapshots import FOLDER, moments, take_snapshot
from vit_demo.training.teacher import Student, Teacher, of_kept, token_loss
from vit_demo.view import Preprocess

FUSED_FROM = 64  # patches
GROUP = 8  # so many pictures share one seed, and with it one draw of RandAugment and mixing


def train(config: TrainConfig) -> Path:
    """Train as the config says; the path of the checkpoint that was best on the test set."""
    config = complete(config)
    with (
        flushed_denormals(),
        join_processes(config.device) as group,
        prepared(config, group) as run,
    ):
        config = run.config
        forward = wrap(run.student or run.model, config.compile, group)
        say = print if group.rank == 0 else lambda *_, **__: None
        say(
            f"{sum(p.numel() for p in run.model.parameters()):,} parameters, "
            f"{len(run.train_set):,} pictures to train on, {len(run.test_set):,} to test, "
            f"{group.world} x {group.device.type}",
            flush=True,
        )
        if config.snapshots and not run.history:
            take_snapshot(run, 0)
        for epoch in range(len(run.history), config.epochs):
            row = train_epoch(run, forward, epoch)
            if epoch + 1 == config.epochs or (epoch + 1) % config.eval_every == 0:
                result = measure(run.average, run.test_set, run.preprocess, group)
                row |= {"test_loss": result["loss"], "test_accuracy": result["top1"]}
            run.history.append(row)
            say(line_of(row, config.epochs), flush=True)
            if group.rank == 0:
                save(run)
        group.wait()  # nobody leaves before the files are there
        path = config.out / "best.safetensors"
        say(f"best test accuracy {run.best:.2%}: {path}", flush=True)
        return path


@contextmanager
def flushed_denormals() -> Iterator[None]:
    """Numbers next to zero make CPUs slow: in training they are zero."""
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(False)


def train_epoch(run: Run, forward: nn.Module, epoch: int) -> dict:
    """One walk over the training pictures; the metrics of it."""
    config, group, begin = run.config, run.group, time.perf_counter()
    totals = torch.zeros(3, device=group.device)  # loss, right answers, pictures
    kept_moments = moments(config.snapshots, config.epochs * run.steps)
    run.model.train()
    hidden = True if group.rank else None  # None: no bar where nobody watches
    bar = tqdm(total=run.steps, desc=f"epoch {epoch + 1}", leave=False, disable=hidden, unit="step")
    for step, (images, targets, kept, wanted) in enumerate(batches(run, epoch)):
        rate = learning_rate(epoch * run.steps + step, run.steps, config)
        with in_precision(config.precision, group.device):
            answer = forward(images, kept_patches=kept)
        logits, tokens = answer if run.student else (answer, None)
        logits = logits.float()
        loss = F.cross_entropy(logits, targets, label_smoothing=config.label_smoothing)
        if run.student:
            loss = loss + config.teacher_tokens * token_loss(tokens, wanted)
        loss.backward()
        nn.utils.clip_grad_norm_(forward.parameters(), config.clip)
        for optimizer in run.optimizers:
            for parameters in optimizer.param_groups:
                parameters["lr"] = rate
            optimizer.step()
            optimizer.zero_grad()
        update_average(run.average, run.model, epoch * run.steps + step, config.ema)
        right = (logits.detach().argmax(1) == targets.argmax(1)).sum()
        totals += torch.stack([loss.detach() * len(images), right, right.new_tensor(len(images))])
        bar.update()
        if (done := epoch * run.steps + step + 1) in kept_moments:
            loss, _, seen = group.sum(totals).tolist()
            take_snapshot(run, done, loss / seen * (step + 1))
        if step % 10 == 0 or step + 1 == run.steps:  # asking a GPU for numbers makes it wait
            loss, accuracy = (totals[:2] / totals[2]).tolist()
            if not math.isfinite(loss):
                raise ValueError(f"The loss is {loss} in epoch {epoch + 1}; try a smaller --lr.")
            speed = (step + 1) * config.batch_size / (time.perf_counter() - begin)
            bar.set_postfix_str(f"loss {loss:.3f}, accuracy {accuracy:.1%}, {speed:.0f} images/s")
    bar.close()
    loss, right, seen = group.sum(totals).tolist()
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


def prepare(config: TrainConfig, group: ProcessGroup) -> Run:
    """Everything before the first step, so that every mistake is found there."""
    saved = config.out / "last.pt"
    started = group.broadcast(saved.exists())
    if started and not config.resume:
        raise holds_a_run(config.out)
    state = group.first(lambda: read_state(saved)) if started else None
    start = load_checkpoint(config.init) if config.init else None
    preprocess = preprocess_of(config, start)
    train_set, test_set = load_in_turn(config, preprocess)
    config = fitting_batch_size(config, len(train_set), group.world)
    model = first_model(config, start, train_set.class_names).to(group.device)
    sizes_to_grow(config, model)  # do they fit the patches?
    if group.device.type == "cpu":
        choose_attention(model, config)
    average = VisionTransformer(model.config).to(group.device)
    average.load_state_dict(model.state_dict())
    run = Run(config, group, train_set, test_set, preprocess, model, average,
              make_optimizers(model, config))  # fmt: skip
    if config.teacher:
        teacher = load_checkpoint(config.teacher)
        run.teacher = Teacher(teacher, config, train_set, preprocess, group, model.config)
    if config.teacher_tokens:
        run.student = first_student(model, teacher.model.config.embed_dim, config).to(group.device)
        matrix, bias = run.student.to_teacher.parameters()
        run.optimizers[0].add_param_group({"params": [matrix], "weight_decay": config.weight_decay})
        run.optimizers[0].add_param_group({"params": [bias], "weight_decay": 0.0})
    moments(config.snapshots, config.epochs * run.steps)  # are there so many?
    if state:
        resume(run, state)
    return run


@contextmanager
def prepared(config: TrainConfig, group: ProcessGroup) -> Iterator[Run]:
    """A run that has its folder for itself; what a killed one was writing there is removed."""
    run, out, kept = prepare(config, group), config.out, config.out / FOLDER
    with ExitStack() as until_done:

        def claim() -> None:
            until_done.enter_context(locked(make_folder(out)))
            if not run.history and (out / "last.pt").exists():  # it ended while we read the data
                raise holds_a_run(out)
            left = [*out.glob("tmp*.part*"), *kept.glob("tmp*.part*")]
            for path in left if run.history else [*left, *kept.glob("step-*.safetensors")]:
                path.unlink()

        group.first(claim)
        yield run


def holds_a_run(folder: Path) -> ValueError:
    return ValueError(f"{folder} holds a run; go on with --resume, or choose another --out.")


def first_student(model: VisionTransformer, width: int, config: TrainConfig) -> Student:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed_of(config.seed, 1))
        return Student(model, width)


def choose_attention(model: VisionTransformer, config: TrainConfig) -> None:
    """Fused attention, or written out? On CPUs the gradient of the fused one is slow in half precision
    and for few tokens."""
    stay = math.prod(model.config.grid) * (1 - config.drop_patches)
    for block in model.blocks:
        block.attn.fused = config.precision == "float32" and stay >= FUSED_FROM


def load_in_turn(config: TrainConfig, preprocess: Preprocess) -> tuple[Dataset, ...]:
    """The data; on each machine the first process looks (and downloads), then the others."""
    first = os.environ.get("LOCAL_RANK", "0") == "0"
    for turn in (True, False):
        if first == turn:
            sets = load_dataset(str(config.dataset), config.data, preprocess.size, len(preprocess.mean),
                                workers=config.workers, preprocess=preprocess)  # fmt: skip
        if dist.is_initialized():
            dist.barrier()
    return sets


def fitting_batch_size(config: TrainConfig, pictures: int, world: int) -> TrainConfig:
    """With so few pictures that they do not fill a batch, a batch is all of them."""
    size = config.batch_size
    if world == 1:
        return replace(config, batch_size=min(size, pictures))
    if size % (world * GROUP) or size > pictures:
        raise ValueError(
            f"--batch-size {size} does not suit {world} processes and {pictures} "
            f"pictures; use a multiple of {world * GROUP} up to {pictures}."
        )
    return config


def wrap(model: VisionTransformer, compiled: bool, group: ProcessGroup) -> nn.Module:
    """What the forward pass goes through: the model, perhaps compiled, perhaps one of many."""
    if compiled:
        try:
            one = torch.ones(1, device=group.device)
            torch.compile(lambda x: x + 1)(one)  # is there a compiler?
            model = torch.compile(model)
        except Exception as error:  # noqa: BLE001 - of any kind: training works without
            reason = (str(error).strip() or type(error).__name__).splitlines()[0]
            tqdm.write(f"--compile does not work here, going on without ({reason})", sys.stderr)
    if group.world > 1:
        devices = [group.device] if group.device.type == "cuda" else None
        model = DistributedDataParallel(model, device_ids=devices)
    return model


# Batches


class Batch(NamedTuple):
    images: Tensor  # (B, C, H, W)
    targets: Tensor  # (B, classes), shares of 1
    kept_patches: Tensor | None = None  # (B, K) the patches that stay; None: all
    tokens: Tensor | None = None  # (B, 1 + K, D) the teacher's, where they are learnt


def batches(run: Run, epoch: int) -> Iterator[Batch]:
    """The batches of an epoch on the device; the next is made while the model works on this."""
    order = torch.randperm(len(run.train_set), generator=generator(run.config.seed, epoch))
    if run.teacher:
        run.teacher.open_view(epoch)
    with ThreadPoolExecutor(1) as ahead:
        coming = ahead.submit(make_batch, run, order, epoch, 0)
        for step in range(run.steps):
            batch = coming.result()
            if step + 1 < run.steps:
                coming = ahead.submit(make_batch, run, order, epoch, step + 1)
            yield Batch(*(None if t is None else t.to(run.group.device) for t in batch))


def make_batch(run: Run, order: Tensor, epoch: int, step: int) -> Batch:
    """This process's part of a batch.

    Random numbers are drawn in groups of pictures, each with a seed of its own, so that it does not
    matter which process a group falls to.
    """
    config, dataset, teacher = run.config, run.train_set, run.teacher
    chosen = run.group.share(order[step * config.batch_size : (step + 1) * config.batch_size])
    sizes = [len(group) for group in chosen.split(GROUP)]
    first = run.group.rank * len(sizes)
    generators = [generator(config.seed, epoch, step, first + i) for i in range(len(sizes))]

    def draw(numbers: int) -> Tensor:
        groups = zip(sizes, generators, strict=True)
        return torch.cat([torch.rand(size, numbers, generator=g) for size, g in groups])

    pixels = dataset.batch(chosen)  # (B, C, H, W) uint8
    targets = F.one_hot(dataset.labels[chosen], len(dataset.class_names)).float()
    draws, kept, whole = draw(DRAWS), None, epoch >= config.epochs - config.whole_epochs
    size = run.model.config.image_size if whole else size_of_epoch(config, run.model, epoch)
    if teacher:
        draws = teacher.draws[chosen]
        targets = targets.lerp(teacher.answers[chosen].float(), config.teacher_weight)
    if config.drop_patches and not whole:  # so many as stay of a picture of full size
        patches = math.prod(patch_grid(size, run.model.config.patch_size))
        stay = max(1, round(math.prod(run.model.config.grid) * (1 - config.drop_patches)))
        kept = draw(patches).argsort(1)[:, :stay] if stay < patches else None
    if config.randaugment:
        groups = zip(pixels.split(GROUP), generators, strict=True)
        pixels = torch.cat([recolour(x, config.randaugment, g) for x, g in groups])
    images = warp(normalise(pixels, run.preprocess), WARPS[config.augment], draws)
    mirrored = torch.zeros(len(images), dtype=torch.bool)
    if teacher and WARPS[config.augment].flip:
        mirrored = draw(1)[:, 0] < 0.5
        images[mirrored] = images[mirrored].flip(3)
    tokens = teacher.tokens_of(chosen, mirrored) if run.student else None
    if (config.mixup or config.cutmix) and not whole:
        parts = [images, targets] if tokens is None else [images, targets, tokens]
        groups = zip(*(part.split(GROUP) for part in parts), generators, strict=True)
        if tokens is None:
            options = (config.mixup, config.cutmix, config.mix_share)
            mixed = [mix(x, y, *options, g) for x, y, g in groups]
            images, targets = map(torch.cat, zip(*mixed, strict=True))
        else:
            options = (run.model.config.grid, config.cutmix, config.mix_share)
            mixed = [mix_patches(x, y, z, *options, g) for x, y, z, g in groups]
            images, targets, tokens = map(torch.cat, zip(*mixed, strict=True))
    if tokens is not None and kept is not None:
        tokens = of_kept(tokens, kept)
    if size != images.shape[2:]:
        images = F.interpolate(images, size=size, mode="bilinear", antialias=True)
    return Batch(images, targets, kept, tokens)


def size_of_epoch(config: TrainConfig, model: VisionTransformer, epoch: int) -> tuple[int, int]:
    """Height and width of the pictures in an epoch before the last, whole ones."""
    sizes = sizes_to_grow(config, model)
    return sizes[epoch * len(sizes) // (config.epochs - config.whole_epochs)]


def sizes_to_grow(config: TrainConfig, model: VisionTransformer) -> list[tuple[int, int]]:
    """The sizes that the pictures have one after another: a patch more each time.

    A small picture shows all of itself in few tokens, and few tokens are quick: at the same cost
    that teaches more than some patches of a large one (Li et al. 2023, CLIPA).
    """
    (height, width), (patch, _) = model.config.image_size, model.config.patch_size
    first = config.start_size
    if not first:
        return [(height, width)]
    if height != width or first % patch or first > width:
        raise ValueError(
            f"--start-size {first} does not suit pictures of {height}x{width} pixels in patches of "
            f"{patch}; use a multiple of {patch} up to {width}, and square pictures."
        )
    return [(side, side) for side in range(first, width + 1, patch)]
