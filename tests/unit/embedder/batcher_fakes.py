"""A scripted model, clocks and a governor for tests of the batcher."""

import threading
import time

import numpy as np

from edge.ports import Budget, Encoded
from edge.types import ModelInfo

SOON = 20


class Clock:
    def now(self):
        return 0

    def monotonic(self):
        return time.monotonic()


class HandClock:
    """Moves when the test says so."""

    def __init__(self):
        self.time = 1000.0

    def now(self):
        return 0

    def monotonic(self):
        return self.time


class ScriptedEmbedder:
    """A text is a word and its length, "name:tokens"; some names fail, and a gate holds the model's runs back."""

    def __init__(self):
        self.info = ModelInfo("scripted", 4, "cpu", 1, 0)
        self.gate = threading.Event()
        self.gate.set()
        self.entered = threading.Semaphore(0)
        self.batches = []
        self.names = {}
        self.lock = threading.Lock()
        self.failures = {}

    def encode(self, texts, lane):
        encoded = []
        for text in texts:
            name, _, length = text.partition(":")
            with self.lock:
                number = self.names.setdefault(name, len(self.names) + 10)
            encoded.append(Encoded(((number,) * int(length or 8),)))
        return encoded

    def embed(self, batch):
        with self.lock:
            known = {number: name for name, number in self.names.items()}
        names = [known[item.windows[0][0]] for item in batch]
        self.batches.append(names)
        self.entered.release()
        assert self.gate.wait(SOON)
        for name in names:
            if name in self.failures:
                raise self.failures[name]
        rows = np.zeros((len(batch), 4), np.float32)
        rows[:, 0] = [item.windows[0][0] for item in batch]
        for row, name in zip(rows, names, strict=True):
            if name.startswith("nan"):
                row[:] = np.nan
        return rows

    def release(self):
        return 0

    def close(self):
        pass


class Governor:
    def __init__(self, **changes):
        self.values = {"padded_tokens": 64, "threads": 1, "duty": 1.0, "background": True, "reason": ""} | changes
        self.observed = []
        self.seen = threading.Event()

    def budget(self):
        return Budget(**self.values)

    def observe(self, padded_tokens, seconds, cpu_seconds):
        self.observed.append(padded_tokens)
        self.seen.set()
