"""Turns that name no session of their own must never take the place of another file's."""

from __future__ import annotations

from pathlib import Path

from edge.cli.lines import file_session


def written(path: Path, text: str) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, "utf-8")
    return path


def test_a_file_that_grows_keeps_its_session(tmp_path: Path) -> None:
    path = written(tmp_path / "talk.jsonl", '{"text": "one"}\n')
    before = file_session(path)
    written(path, '{"text": "one"}\n{"text": "two"}\n')
    assert file_session(path) == before


def test_files_of_one_name_in_two_folders_are_two_sessions(tmp_path: Path) -> None:
    one = written(tmp_path / "a" / "talk.jsonl", '{"text": "one"}\n')
    other = written(tmp_path / "b" / "talk.jsonl", '{"text": "one"}\n')
    assert file_session(one) != file_session(other)


def test_a_file_that_begins_with_other_words_is_another_session(tmp_path: Path) -> None:
    path = written(tmp_path / "talk.jsonl", '{"text": "one"}\n')
    before = file_session(path)
    written(path, '{"text": "tomorrow"}\n')
    assert file_session(path) != before
