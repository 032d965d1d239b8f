"""Seeded blocks draw the same numbers each time, and change no numbers of the caller."""

from __future__ import annotations

import threading

import torch

from onnxsmith.base.seams.torch.randomness import seeded


def test_a_seeded_block_draws_the_same_and_the_caller_draws_on() -> None:
    before = torch.get_rng_state()
    with seeded(3):
        first = torch.rand(4)
    with seeded(3):
        again = torch.rand(4)
    with seeded():
        other = torch.rand(4)
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert torch.equal(torch.get_rng_state(), before)


def test_no_lock_of_torch_is_taken_in_which_another_thread_could_fork() -> None:
    """A fork at the moment at which a thread holds this lock waits for it at its first `torch.manual_seed`."""
    ended = threading.Event()

    def draws() -> None:
        with seeded():
            torch.rand(1)
        ended.set()

    with torch.cuda._initialization_lock:
        thread = threading.Thread(target=draws)
        thread.start()
        assert ended.wait(20)
    thread.join()
