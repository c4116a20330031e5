"""The indexes of a space: one for each running model, on one directory."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from edge.index.live import IndexStats, LiveIndex, Tuning
from edge.ports import VectorSource
from edge.types import ModelInfo, RowIds


class Indexes(Mapping[str, LiveIndex]):
    """By model id, in the order of the configuration."""

    def __init__(self, indexes: Mapping[str, LiveIndex]) -> None:
        self._indexes = dict(indexes)

    @classmethod
    def open(
        cls,
        directory: Path,
        models: Sequence[ModelInfo],
        source: VectorSource,
        *,
        identity: str,
        read_only: bool,
        tuning: Tuning,
    ) -> Indexes:
        """All of them, or none; see LiveIndex.open."""
        opened: dict[str, LiveIndex] = {}
        with contextlib.ExitStack() as undo:
            for info in models:
                opened[info.id] = LiveIndex.open(
                    directory,
                    info.id,
                    info.dimension,
                    source,
                    identity=identity,
                    read_only=read_only,
                    tuning=tuning,
                    neighbours=[other.id for other in models if other.id != info.id],
                )
                undo.callback(opened[info.id].close)
            undo.pop_all()
        return cls(opened)

    def __getitem__(self, model: str) -> LiveIndex:
        return self._indexes[model]

    def __iter__(self) -> Iterator[str]:
        return iter(self._indexes)

    def __len__(self) -> int:
        return len(self._indexes)

    def near(self, source: VectorSource, rowid: int, count: int) -> list[tuple[str, int, float]]:
        """(model, rowid, cosine) of the nearest to a memory by each model that has a vector of it, `count` at most of
        each, itself among them."""
        found: list[tuple[str, int, float]] = []
        for model, index in self._indexes.items():
            for _, vectors in source.iter_vectors(model, np.array([rowid], np.int64), 1):
                nearest, cosines = index.search(vectors[0], count)
                found += [(model, int(one), float(cosine)) for one, cosine in zip(nearest, cosines, strict=True)]
        return found

    def remove(self, rowids: RowIds) -> None:
        """From each of them."""
        for index in self._indexes.values():
            index.remove(rowids)

    def drop(self) -> int:
        """Deletes every snapshot, also those of models that run no more; see LiveIndex.drop."""
        return sum([index.drop() for index in self._indexes.values()])

    def rebuild(self) -> int:
        """One after the other, as each takes the memory of a second graph; how many vectors there are. Blocks."""
        return sum([index.rebuild().result() for index in self._indexes.values()])

    def tend(self, allowed: bool) -> None:
        """Whether they may tend themselves."""
        for index in self._indexes.values():
            if allowed:
                index.resume()
            else:
                index.pause()

    def stats(self) -> IndexStats:
        """Of all together; of what failed, each different word of it."""
        stats = [index.stats() for index in self._indexes.values()]
        return IndexStats(
            size=sum(one.size for one in stats),
            overlay=sum(one.overlay for one in stats),
            deleted=sum(one.deleted for one in stats),
            rebuilding=any(one.rebuilding for one in stats),
            discarded="; ".join(dict.fromkeys(one.discarded for one in stats if one.discarded)),
            snapshot_error="; ".join(dict.fromkeys(one.snapshot_error for one in stats if one.snapshot_error)),
        )

    def close(self) -> None:
        """See LiveIndex.close."""
        for index in self._indexes.values():
            index.close()
