"""Production draws fresh words from the operating system, each process and each time others."""

import os
import subprocess
import sys

import numpy as np
import pytest

from dpcore.sampling.source import SystemSource
from tests.conftest import ROOT

WORDS = "from dpcore.sampling.source import SystemSource; print(*SystemSource().words(4))"


def test_every_bit_is_one_of_the_operating_system(monkeypatch):
    asked = []

    def urandom(size: int) -> bytes:
        asked.append(size)
        return bytes(i % 251 for i in range(size))

    monkeypatch.setattr(os, "urandom", urandom)
    words = SystemSource().words(1000)
    assert sum(asked) == 8 * 1000
    assert words.tobytes() == bytes(i % 251 for i in range(8000))


def test_no_word_is_drawn_twice_and_every_bit_is_a_fair_coin():
    words = np.concatenate([SystemSource().words(50_000) for _ in range(2)])
    assert len(np.unique(words)) == len(words)  # a collision has a chance below 3e-10
    bits = (words[:, None] >> np.arange(64, dtype=np.uint64)) & np.uint64(1)
    deviations = (bits.mean(axis=0) - 0.5) * 2 * np.sqrt(len(words))
    assert np.abs(deviations).max() < 7  # by chance once in 5e9 runs


@pytest.mark.slow
def test_two_processes_do_not_draw_the_same_words():
    """Started one by one, and forked."""
    started = [
        subprocess.run(
            [sys.executable, "-c", WORDS], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout.split()
        for _ in range(2)
    ]
    forked = []
    for _ in range(2):
        reading, writing = os.pipe()
        if (child := os.fork()) == 0:
            os.write(writing, " ".join(map(str, SystemSource().words(4))).encode())
            os._exit(0)
        os.waitpid(child, 0)
        forked.append(os.read(reading, 4096).decode().split())
        os.close(reading)
        os.close(writing)
    words = [word for each in (*started, *forked) for word in each]
    assert len(set(words)) == len(words) == 16
