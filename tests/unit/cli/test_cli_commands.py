from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from scripted_box import ScriptedBox, rich

TRICKY = "安全\u202egpj.exe \x1b[2J已清空 \x7f\x9b שלום עולם"


def jsonl(path: Path, *lines: Any) -> str:
    path.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines), "utf-8")
    return str(path)


# --- what every command shares


def test_help_names_every_command_and_loads_none(edge: Any) -> None:
    code = (
        "import sys; from edge.cli import main; main(['--help'])\n"
        "print([name for name in ('grpc', 'numpy', 'google.protobuf', 'rich', 'edge.client') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "recall" in done.stdout
    assert done.stdout.splitlines()[-1] == "[]"


def test_every_command_has_help(edge: Any) -> None:
    from edge.cli import _COMMANDS

    for name in _COMMANDS:
        done = edge(name, "--help")
        assert done.status == 0
        assert "Usage" in done.out


@pytest.mark.parametrize(
    "arguments", [(), ("nonsense",), ("recall",), ("recall", "--nonsense", "x"), ("recall", "x", "--level", "most")]
)
def test_wrong_usage_is_status_2(edge: Any, arguments: tuple[str, ...]) -> None:
    done = edge(*arguments)
    assert done.status == 2
    assert "edge" in done.err
    assert done.out == ""


def test_no_box_is_status_3_with_the_next_step(edge: Any, tmp_path: Path) -> None:
    done = edge("recall", "x", "--data", str(tmp_path))
    assert done.status == 3
    assert "edge serve" in done.err
    assert done.err.count("\n") == 1


def test_a_folder_whose_box_does_not_run_is_named_with_how_to_start_it(
    edge: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = edge("status", "--data", str(tmp_path))
    assert (done.status, done.err) == (
        3,
        f"edge: no box runs on {tmp_path}; start it with `edge serve --data {tmp_path}`\n",
    )
    # Of the environment's folder the address rule goes on to loopback: whatever comes from there says so.
    monkeypatch.setattr("edge.cli.options.DEFAULT_PORT", 1)
    monkeypatch.setattr("edge.client.address._LOOPBACK", "127.0.0.1:1")
    done = edge("status")
    assert done.status == 3
    assert f"no box runs on {tmp_path / 'data'} (EDGE_DATA)" in done.err and "`edge serve`" in done.err
    # An address that was named is what was asked.
    assert "EDGE_DATA" not in edge("status", "--address", "127.0.0.1:1").err


def test_another_box_that_answers_for_a_folder_whose_box_does_not_run_is_named(
    edge: Any, scripted: ScriptedBox, monkeypatch: pytest.MonkeyPatch
) -> None:
    from edge.cli.options import _placed
    from edge.errors import Unauthenticated

    monkeypatch.delenv("EDGE_ADDRESS")
    told = _placed(Unauthenticated("a token is needed"), "127.0.0.1:7430", None, None)
    assert told.startswith("a token is needed (this is from 127.0.0.1:7430: no box runs on ")
    assert _placed(Unauthenticated("a token is needed"), "unix:/x/edge.sock", None, None) == "a token is needed"


@pytest.mark.parametrize(
    ("code", "status"),
    [("UNAUTHENTICATED", 4), ("PERMISSION_DENIED", 4), ("NOT_FOUND", 5), ("INVALID_ARGUMENT", 2), ("DATA_LOSS", 1)],
)
def test_the_exit_status_says_what_kind_of_failure(edge: Any, scripted: ScriptedBox, code: str, status: int) -> None:
    scripted.turn_away = [rich(code, "so it is; do that")]
    done = edge("status")
    assert (done.status, done.err) == (status, "edge: so it is; do that\n")


def test_a_failure_is_one_line_even_if_the_box_says_more(edge: Any, scripted: ScriptedBox) -> None:
    scripted.turn_away = [rich("DATA_LOSS", "one\ntwo \x1b[2J")]
    assert edge("status").err == "edge: one\\ntwo \\x1b[2J\n"


def test_a_traceback_comes_only_when_asked_for(edge: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert "Traceback" not in edge("status", "--data", str(tmp_path)).err
    monkeypatch.setenv("EDGE_DEBUG", "1")
    assert "Traceback" in edge("status", "--data", str(tmp_path)).err


# --- memories


def test_remember_then_recall_get_ls_and_forget(edge: Any, scripted: ScriptedBox) -> None:
    remembered = json.loads(edge("remember", "我家的猫叫豆包", "--tag", "cat", "--json").out)["memories"][0]
    assert remembered["tags"] == ["cat"]
    id_ = remembered["id"]
    done = edge("recall", "豆包", "--explain")
    assert done.status == 0
    assert "我家的猫叫豆包" in done.out and id_ in done.out and "semantic" in done.out and " ms" in done.out
    assert json.loads(edge("recall", "豆包", "--json").out)["hits"][0]["memory"]["id"] == id_
    assert "我家的猫叫豆包" in edge("get", id_).out
    assert "我家的猫叫豆包" in edge("ls").out
    assert edge("forget", id_, "--dry-run").out.startswith("would forget 1 memory of ")
    assert id_ in edge("ls").out
    done = edge("forget", id_)
    assert done.status == 0
    assert "receipt-1" in done.out
    assert edge("get", id_).status == 5
    assert edge("forget", id_).status == 5


def test_an_empty_query_names_its_field(edge: Any, scripted: ScriptedBox) -> None:
    done = edge("recall", " ")
    assert done.status == 2
    assert "query" in done.err


@pytest.mark.parametrize("grace", [False, True])
def test_a_receipt_says_when_it_is_erased_only_while_it_is_hidden(grace: bool) -> None:
    from edge.cli.forget import receipt_dict
    from edge.v1 import memory_pb2

    receipt = memory_pb2.ForgetReceipt(id="r", turns=1)
    if grace:
        receipt.erased_at.FromSeconds(1_767_225_600)
    shown = receipt_dict(receipt)
    assert shown["erases_at"] == ("2026-01-01T00:00:00Z" if grace else None)
    assert "" not in (shown["erases_at"], shown.get("erased_at"))


def test_recall_that_finds_nothing_says_so_and_is_no_failure(edge: Any, scripted: ScriptedBox) -> None:
    done = edge("recall", "nothing like it")
    assert done.status == 0
    assert "nothing found" in done.out


def test_the_context_block_comes_alone(edge: Any, scripted: ScriptedBox) -> None:
    assert edge("recall", "x", "--context").out == "asked x\n"


def test_what_could_move_the_cursor_is_shown_as_escapes(edge: Any, scripted: ScriptedBox) -> None:
    id_ = scripted.add(TRICKY, source="s\x1b[31m").id
    for command in (["recall", "安全", "--explain"], ["get", id_], ["ls"]):
        out = edge(*command).out
        assert not set(out) & set("\u202e\x1b\x7f\x9b")
        assert "\\u202egpj.exe" in out and "\\x1b[2J" in out and "\\x7f\\x9b" in out
        assert "שלום עולם" in out


def test_json_gives_the_exact_text(edge: Any, scripted: ScriptedBox) -> None:
    id_ = scripted.add(TRICKY, attributes=b"\x81\xa1k\xc4\x01\xff").id
    out = edge("get", id_, "--json").out
    assert not set(out) & set("\u202e\x1b\x7f\x9b")
    assert json.loads(out)["text"] == TRICKY
    assert json.loads(out)["attributes"] == {"k": "ff"}


def test_ls_narrows_by_uri(edge: Any, scripted: ScriptedBox) -> None:
    scripted.add("a note", kind="note")
    scripted.add("a turn")
    assert json.loads(edge("ls", "edge://public/note", "--json").out)["memories"][0]["text"] == "a note"
    assert len(json.loads(edge("ls", "--limit", "1", "--json").out)["memories"]) == 1
    done = edge("ls", "edge://private")
    assert done.status == 2
    assert "uri" in done.err


def test_remember_reads_stdin_for_a_dash(edge: Any, scripted: ScriptedBox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"from stdin\n")))
    assert edge("remember", "-").status == 0
    assert [memory.text for memory in scripted.memories.values()] == ["from stdin"]


@pytest.mark.parametrize(
    "when", ["yesterday", "2026-13-01", "2026-01-01T25:00:00Z", "1969-01-01", "2026-01-01T00:00:00+99"]
)
def test_a_senseless_time_names_its_option(edge: Any, scripted: ScriptedBox, when: str) -> None:
    done = edge("recall", "x", "--since", when)
    assert done.status == 2
    assert "since" in done.err


# --- the box


def test_status_is_for_readers_and_for_programs(edge: Any, scripted: ScriptedBox) -> None:
    assert "low on space" in edge("status").out
    assert json.loads(edge("status", "--json").out)["spaces"][0]["name"] == "public"


def test_status_is_printed_again_while_watched(edge: Any, scripted: ScriptedBox) -> None:
    assert edge("status", "--watch").out.count("low on space") == 3


def test_rebuild_goes_to_the_box_that_was_named(edge: Any, scripted: ScriptedBox) -> None:
    assert json.loads(edge("rebuild", "--from-log", "--json").out)["vectors"] == 2
    assert json.loads(edge("rebuild", "--index", "--json").out)["vectors"] == 1


def test_doctor_finds_what_is_missing(edge: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("EDGE_MODELS", str(tmp_path / "models"))
    done = edge("doctor")
    assert done.status == 1
    assert "edge model pull" in done.out
    findings = json.loads(edge("doctor", "--json").out)["findings"]
    assert all(finding["ok"] or finding["next_step"] for finding in findings)
    assert not (tmp_path / "data").exists()


def test_model_list_is_for_readers_and_for_programs(edge: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("EDGE_MODELS", str(tmp_path / "models"))
    assert "bge-small-zh-v1.5-q" in edge("model", "list").out
    models = json.loads(edge("model", "list", "--json").out)["models"]
    assert [model["id"] for model in models if model["default"]] == ["bge-small-zh-v1.5-q"]
    done = edge("model", "pull", "--from", str(tmp_path / "nowhere"))
    assert done.status == 1
    assert "nowhere" in done.err


@pytest.mark.parametrize("arguments", [("--no-auth", "--listen", "0.0.0.0:7430"), ("--config", "nowhere")])
def test_serve_refuses_what_it_must_not_do(edge: Any, arguments: tuple[str, ...]) -> None:
    assert edge("serve", *arguments).status == 2


# --- ingest


def test_ingest_counts_by_state_and_may_be_run_again(edge: Any, scripted: ScriptedBox, tmp_path: Path) -> None:
    file = jsonl(tmp_path / "talk.jsonl", *({"text": f"sentence {number}"} for number in range(150)))
    done = edge("ingest", file)
    assert done.status == 0
    assert done.out.startswith("150 turns: 150 searchable")
    done = edge("ingest", file, "--json")
    assert json.loads(done.out)["states"] == {"duplicate": 150}
    stored = next(iter(scripted.log.values()))
    assert (stored.source, stored.seq, stored.role) == ("cli", 1, "user")
    assert stored.session.startswith("talk.jsonl-")
    assert not stored.HasField("occurred_at")


def test_ingest_says_what_is_found_by_words_only_and_calls_it_no_failure(
    edge: Any, scripted: ScriptedBox, tmp_path: Path
) -> None:
    scripted.by_words = {"long one", "another"}
    file = jsonl(tmp_path / "talk.jsonl", *({"text": text} for text in ("short", "long one", "another")))
    done = edge("ingest", file)
    assert done.status == 0
    assert done.out.startswith("3 turns: 3 searchable")
    assert "2 of them, or a part, by words only: memory is short" in done.out
    scripted.log.clear()
    assert json.loads(edge("ingest", file, "--json").out)["words_only"] == 2


def test_ingest_takes_every_field_of_the_contract(edge: Any, scripted: ScriptedBox, tmp_path: Path) -> None:
    line = {
        "text": "t \ud83d",
        "source": "s",
        "session": "e",
        "seq": 7,
        "role": "assistant",
        "occurred_at": "2026-01-01T08:00:00.5+08:00",
        "tags": ["a"],
        "attributes": {"k": [1, None]},
        "space": "work",
    }
    assert edge("ingest", jsonl(tmp_path / "f.jsonl", line)).status == 0
    [turn] = scripted.log.values()
    assert turn.text == "t \ufffd"
    assert (turn.occurred_at.seconds, turn.occurred_at.nanos) == (1767225600, 500_000_000)
    assert (turn.attributes, turn.space, list(turn.tags)) == (b"\x81\xa1k\x92\x01\xc0", "work", ["a"])


def test_bad_lines_are_named_and_the_others_go_in(edge: Any, scripted: ScriptedBox, tmp_path: Path) -> None:
    bad = {
        "line": ["not json", "[1]", '{"text": "a", "text": "b"}', '{"text": NaN}', "[" * 100_000],
        "text": ['{"text": 5}', '{"seq": 1}', '{"text": ""}'],
        "seq": ['{"text": "x", "seq": "1"}', '{"text": "x", "seq": 1.5}', '{"text": "x", "seq": 99999999999999999999}'],
        "tags": ['{"text": "x", "tags": [{"a": 1}]}', '{"text": "x", "tags": null}'],
        "occurred_at": ['{"text": "x", "occurred_at": 1767225600}', '{"text": "x", "occurred_at": "2026-01-01"}'],
        "attributes": ['{"text": "x", "attributes": [1]}', '{"text": "x", "attributes": {"a": 1e400}, "b": 1}'],
        "nonsense": ['{"text": "x", "nonsense": 1}'],
    }
    lines = [line for some in bad.values() for line in some]
    file = jsonl(tmp_path / "bad.jsonl", *lines, {"text": "good"}, "", {"text": "good too"})
    done = edge("ingest", file, "--json")
    assert done.status == 1
    summary = json.loads(done.out)
    assert summary["states"] == {"rejected": len(lines), "searchable": 2}
    assert sorted(entry["where"] for entry in summary["rejected"]) == sorted(
        f"{file}:{number}" for number in range(1, len(lines) + 1)
    )
    named = {entry["where"]: entry["field"].partition("[")[0] for entry in summary["rejected"]}
    number = 0
    for field, some in bad.items():
        for _ in some:
            number += 1
            assert named[f"{file}:{number}"] in (field, "b"), lines[number - 1]
    assert f"{file}:1: " in done.err


def test_bytes_that_are_not_utf8_are_named(edge: Any, scripted: ScriptedBox, tmp_path: Path) -> None:
    file = tmp_path / "f.jsonl"
    file.write_bytes(b'\xef\xbb\xbf{"text": "with a BOM"}\r\n{"text": "\xed\xa0\xbd"}\n{"text": "last, no newline"}')
    done = edge("ingest", str(file))
    assert done.status == 1
    assert f"{file}:2: line: is not UTF-8" in done.err
    assert sorted(turn.text for turn in scripted.log.values()) == ["last, no newline", "with a BOM"]


def test_a_line_without_end_is_passed_over(edge: Any, scripted: ScriptedBox, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("edge.cli.lines.LINE_BYTES", 100)
    file = jsonl(tmp_path / "f.jsonl", {"text": "x" * 1000}, {"text": "short"})
    done = edge("ingest", file)
    assert done.status == 1
    assert f"{file}:1: line: has 1013 bytes" in done.err
    assert [turn.text for turn in scripted.log.values()] == ["short"]


def test_each_stdin_is_a_session_of_its_own(edge: Any, scripted: ScriptedBox, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(2):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b'{"text": "piped"}\n')))
        assert edge("ingest", "-").status == 0
    sessions = {turn.session for turn in scripted.log.values()}
    assert len(sessions) == 2
    assert all(session.startswith("stdin-") for session in sessions)


def test_a_file_that_is_not_there_is_wrong_usage_before_anything_is_sent(
    edge: Any, scripted: ScriptedBox, tmp_path: Path
) -> None:
    file = jsonl(tmp_path / "f.jsonl", {"text": "x"})
    done = edge("ingest", file, str(tmp_path / "missing.jsonl"))
    assert done.status == 2
    assert "missing.jsonl" in done.err
    assert not scripted.log
