"""Draws the same random numbers in a block each time, and leaves the numbers of the caller as they were.

`torch.manual_seed` would also seed the GPUs of the caller, and takes a lock of torch: a process that another thread
forks at this moment waits for the lock for ever.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

REACHES = ()


@contextmanager
def seeded(seed: int = 0) -> Iterator[None]:
    """Seeds the generators of torch inside the block: that of the CPU, and those of the GPUs in use."""
    devices = range(torch.cuda.device_count() if torch.cuda.is_initialized() else 0)  # type: ignore[no-untyped-call]
    with torch.random.fork_rng(devices=list(devices)):
        for generator in (torch.default_generator, *(torch.cuda.default_generators[device] for device in devices)):
            generator.manual_seed(seed)
        yield
