"""Which device, and which processes share the work: one process, or those that torchrun started."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

T = TypeVar("T")
PATIENCE = timedelta(days=7)  # for the slowest: torchrun itself ends a group that lost a process


def choose_device(device: str = "auto") -> torch.device:
    """ "auto": CUDA if there is one, else Apple's MPS, else the CPU."""
    if device == "auto":
        has_mps = torch.backends.mps.is_available()
        device = "cuda" if torch.cuda.is_available() else "mps" if has_mps else "cpu"
    try:
        chosen = torch.device(device)
        torch.zeros(1, device=chosen).tolist()  # "meta" can be asked for, but computes nothing
    except Exception as error:
        raise ValueError(
            f"The device {device!r} cannot be used here; use auto, cpu, cuda or mps."
        ) from error
    return chosen


def in_precision(precision: str, device: torch.device) -> torch.autocast:
    """A context in which matrix products are done in bfloat16, or in float32 as everything is."""
    return torch.autocast(device.type, torch.bfloat16, enabled=precision == "bfloat16")


@dataclass(frozen=True)
class ProcessGroup:
    """The processes that work together; alone, this one is rank 0 of 1."""

    rank: int
    world: int
    device: torch.device

    def share(self, items: Tensor) -> Tensor:
        """This process's part of a batch."""
        return items.chunk(self.world)[self.rank]

    def sum(self, x: Tensor) -> Tensor:
        """The sum over all processes, on the CPU."""
        x = x.to(self.device, copy=True)  # the reduction is in place
        if dist.is_initialized():
            dist.all_reduce(x)
        return x.cpu()

    def broadcast(self, value: Any) -> Any:
        """Rank 0's value, for all: perhaps only its machine has the file in question."""
        values = [value]
        if dist.is_initialized():
            dist.broadcast_object_list(values, src=0, device=self.device)
        return values[0]

    def first(self, work: Callable[[], T]) -> T:
        """Rank 0 does this, for all: everybody gets what it found, or the error it met."""
        found = error = None
        if self.rank == 0:
            try:
                found = work()
            except (ValueError, OSError) as met:
                error = met
        found, error = self.broadcast((found, error))
        if error is not None:
            raise error
        return found

    def wait(self) -> None:
        if dist.is_initialized():
            dist.barrier()


@contextmanager
def join_processes(device: str) -> Iterator[ProcessGroup]:
    """Join the other processes if torchrun started this one; it says so in the environment."""
    world, rank = (int(os.environ.get(*of)) for of in (("WORLD_SIZE", "1"), ("RANK", "0")))
    chosen = choose_device(device)
    if world == 1:
        yield ProcessGroup(0, 1, chosen)
        return
    if chosen.type == "cuda":
        chosen = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(chosen)
    backend = "nccl" if chosen.type == "cuda" else "gloo"
    dist.init_process_group(backend, timeout=PATIENCE)
    try:
        yield ProcessGroup(rank, world, chosen)
    except (ValueError, OSError):
        if rank == 0:
            raise
        raise SystemExit(2) from None  # all processes find the same mistake; one of them says it
    finally:
        dist.destroy_process_group()
