"""One process or many: who works together, and on which device."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor

from vit_demo.explain import choose_device


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
