from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from ledger_fakes import Ledger, turn

from edge.ledger.reindex import renew
from edge.ledger.rows import clean
from edge.lexicon.words import LEXICON_VERSION, WordLexicon
from edge.types import Filter

LEXICON = WordLexicon()


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    """Its texts are indexed as an older lexicon had them: by characters and the runs between spaces."""
    ledger = Ledger(tmp_path / "ledger")
    ledger.say(turn("她在painting裡面", 1), turn("臺灣的豆包", 2), *[turn(f"note {i}", 10 + i) for i in range(120)])
    yield ledger
    ledger.close()


def terms(text: str) -> str:
    return " ".join(clean(LEXICON.index_terms(text)))


def never() -> bool:
    return False


def found(ledger: Ledger, query: str) -> list[str]:
    hits = ledger.queries.search(LEXICON.query_terms(query), 10, Filter())
    memories = ledger.queries.fetch([hit.rowid for hit in hits])
    return [memories[hit.rowid].text for hit in hits]


def test_an_old_index_gets_the_terms_of_the_new_lexicon(ledger: Ledger) -> None:
    assert found(ledger, "painted") == [] == found(ledger, "台湾")
    assert renew(ledger.database, terms, LEXICON_VERSION, never) > 0
    assert found(ledger, "painted") == ["她在painting裡面"]
    assert found(ledger, "台湾")[0] == "臺灣的豆包"
    assert found(ledger, "里面") == ["她在painting裡面"]
    assert ledger.database.integrity() == []


def test_it_is_made_anew_once(ledger: Ledger) -> None:
    renew(ledger.database, terms, LEXICON_VERSION, never)
    assert renew(ledger.database, lambda text: "other", LEXICON_VERSION, never) == 0
    assert renew(ledger.database, lambda text: "other", LEXICON_VERSION + 1, never) == 122


def test_what_was_interrupted_goes_on_where_it_ended(ledger: Ledger) -> None:
    looks = iter([False, False, True])
    seen: list[str] = []

    def noting(text: str) -> str:
        seen.append(text)
        return terms(text)

    renew(ledger.database, noting, LEXICON_VERSION, lambda: next(looks))
    assert 0 < len(seen) < 122
    renew(ledger.database, noting, LEXICON_VERSION, never)
    assert len(seen) == 122
    assert found(ledger, "painted") == ["她在painting裡面"]


def test_superseded_texts_stay_unfound(ledger: Ledger) -> None:
    ledger.say(turn("她在睡觉", 1))
    renew(ledger.database, terms, LEXICON_VERSION, never)
    assert found(ledger, "painted") == []


def test_an_empty_ledger_needs_nothing(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "empty")
    assert renew(ledger.database, terms, LEXICON_VERSION, never) == 0
    ledger.close()
