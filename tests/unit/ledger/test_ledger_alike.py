"""The same change of many memories, and what comes as one row of many: nothing is lost by either."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ledger_fakes import Ledger
from revision_fakes import changed, revisions, say

from edge.errors import DiskFull
from edge.ledger import writes
from edge.ledger.queries import Queries
from edge.ledger.revising import AT_ONCE
from edge.ledger.revisions import ARCHIVED, WEIGHTED, Alike, Change, Fields
from edge.ledger.rows import pack, unpack
from edge.ledger.unused import Unused
from edge.types import Filter

AWAY = (Fields(archived=False), Fields(archived=True))


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger(tmp_path / "d") as made:
        yield made


def rows(ledger: Ledger, table: str) -> int:
    with ledger.database.reader() as connection:
        return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


def listed(ledger: Ledger) -> list[str]:
    return [memory.id for memory in ledger.queries.list_page(Filter(), 99)[0]]


@given(st.lists(st.text()), st.slices(9))
def test_it_is_the_sequence_of_its_changes(ids: list[str], part: slice) -> None:
    alike, apart = Alike(ids, *AWAY), [Change(id, *AWAY) for id in ids]
    assert list(alike) == apart and len(alike) == len(apart)
    assert list(alike[part]) == apart[part] and isinstance(alike[part], Alike)
    assert [alike[place] for place in range(-len(ids), len(ids))] == apart * 2


def test_each_choice_is_a_revision_of_its_own_and_what_chooses_nothing_is_none(ledger: Ledger) -> None:
    ids = say(ledger, "一", "二", "三")
    here = revisions(ledger)
    seen: list[Queries] = []

    def choose(*chosen: str) -> object:
        return lambda queries: (seen.append(queries), list(chosen))[1]

    done = here.move([choose(ids[0], ids[1]), choose(), choose(ids[2])], "rule", archived=True)
    assert [[one.id for one in each.changes] for each in done] == [ids[:2], ids[2:]]
    assert {each.why for each in done} == {ARCHIVED} and len(seen) == 3
    # All of it is in the tables when it returns.
    assert listed(ledger) == []
    here.undo(done[0].id, "owner")
    assert set(listed(ledger)) == set(ids[:2])
    assert here.move([], "rule", archived=False) == []


def test_a_memory_that_is_named_twice_is_moved_once_however_far_apart(ledger: Ledger) -> None:
    ids = say(ledger, "一", "二", "三")
    here = revisions(ledger)
    (done,) = here.archive([*ids[:2], *ids[:1] * AT_ONCE, ids[2]], "owner")
    assert [one.id for one in done.changes] == ids
    here.undo(done.id, "owner")
    assert set(listed(ledger)) == set(ids)


def test_a_choice_that_fails_leaves_those_before_it_moved(ledger: Ledger) -> None:
    ids = say(ledger, "一", "二")
    here = revisions(ledger)

    def full(_: Queries) -> list[str]:
        raise DiskFull("no room left")

    with pytest.raises(DiskFull):
        here.move([lambda _: ids[:1], full, lambda _: ids[1:]], "rule", archived=True)
    with here.settled():
        assert listed(ledger) == ids[1:]


def test_a_memory_that_is_erased_is_passed_over_and_named_nowhere(ledger: Ledger) -> None:
    (id,) = say(ledger, "一")

    def apply(connection: object) -> None:
        writes.revise(connection, 99, Alike((id, "erased"), *AWAY), {})  # type: ignore[arg-type]  # the writer's own

    ledger.database.submit(apply).result()
    assert rows(ledger, "revised") == 1 and listed(ledger) == []
    ledger.database.submit(apply).result()
    assert rows(ledger, "revised") == 1


def test_what_the_rule_put_away_is_told_from_what_somebody_did_later(ledger: Ledger) -> None:
    ids = say(ledger, "一", "二", "三", "四")
    here, unused = revisions(ledger), Unused(ledger.database)
    here.move([lambda _: ids], "rule", archived=True)
    here.restore(ids[:1], "owner")
    here.archive(ids[:1], "owner")
    here.revise(changed(ids[1], weight=2.0), WEIGHTED, "owner")
    here.restore(ids[2:3], "owner")
    here.move([lambda _: ids[2:3]], "rule", archived=True)
    assert unused.put_away(ids) == set(ids[1:])
    assert unused.put_away([]) == set()


FLOATS = st.lists(st.integers(0, 0xFFFF), min_size=4, max_size=4)


@given(st.lists(FLOATS, max_size=5))
def test_vectors_come_back_bit_by_bit_whatever_their_bytes_are(tmp_path_factory: object, bits: list[list[int]]) -> None:
    stored = np.array(bits, "<u2").reshape(len(bits), 4)
    with Ledger(tmp_path_factory.mktemp("v") / "d") as ledger:  # type: ignore[attr-defined]  # pytest's own
        ids = say(ledger, *(f"第{n}件" for n in range(len(bits) + 1)))
        known = ledger.queries.by_ids(ids)
        rowids = np.array([known[id].rowid for id in ids], np.int64)

        def put(connection: object) -> None:
            connection.executemany(  # type: ignore[attr-defined]  # sqlite3's own
                "INSERT INTO vectors VALUES ('m', ?, ?)",
                [(int(rowid), one.tobytes()) for rowid, one in zip(rowids, stored, strict=False)],
            )

        ledger.database.submit(put).result()
        backwards = rowids[::-1].copy()
        found, vectors = ledger.queries.vectors("m", backwards)
    assert found.tolist() == backwards[1:].tolist()
    if len(bits):
        assert vectors.shape == (len(bits), 4)
        same = unpack(stored[::-1].tobytes(), len(bits))
        assert vectors.tobytes() == same.tobytes()


def test_packed_vectors_are_unpacked_to_what_they_were() -> None:
    rows = np.array([[0.0, -0.0, 1.5], [65504.0, -1.0, 2.0**-14]], np.float32)
    assert unpack(pack(rows).tobytes(), 2).tolist() == rows.tolist()


def test_one_column_comes_back_in_its_order(ledger: Ledger) -> None:
    ledger.say()
    with ledger.database.reader() as connection:
        sql = "SELECT value FROM json_each('[3,1,2]') ORDER BY value"
        assert writes.numbers(connection, f"{sql} DESC") == [3, 2, 1]
        assert writes.numbers(connection, f"{sql} LIMIT ?", (2,)) == [1, 2]
        assert writes.numbers(connection, f"{sql} LIMIT 0") == []
