from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted_box import ScriptedBox

from edge.cli.uri import Place, parse
from edge.errors import InvalidArgument


@pytest.mark.parametrize(
    ("uri", "place"),
    [
        ("", Place()),
        ("edge://", Place()),
        ("edge://public", Place("public")),
        ("edge://public/", Place("public")),
        ("work/note", Place("work", "note")),
        ("edge://private/alice", Place("private/alice")),
        ("edge://private/alice/note/ID-1", Place("private/alice", "note", "ID-1")),
    ],
)
def test_a_uri_is_read_as_deep_as_it_goes(uri: str, place: Place) -> None:
    assert parse(uri, "uri") == place
    assert parse(place.uri(), "uri") == place


@pytest.mark.parametrize(
    "uri",
    [
        "edge://private",
        "edge://private/",
        "edge://nowhere",
        "edge://public//x",
        "edge:///turn/x",
        "edge://public/turn/x/y",
        "edge://private/a/b/c/d",
        "edge://../x",
        "edge://private/../public/turn/x",
        "edge://%70ublic",
        "edge://public/NOTE",
        "http://public/turn/x",
        "edge:public",
    ],
)
def test_what_is_no_uri_is_refused_by_name(uri: str) -> None:
    with pytest.raises(InvalidArgument, match=r"^uri: .*use ") as caught:
        parse(uri, "uri")
    assert caught.value.field == "uri"


@given(st.text(max_size=30))
def test_any_text_is_a_place_or_refused(text: str) -> None:
    try:
        place = parse(text, "uri")
    except InvalidArgument:
        return
    assert parse(place.uri(), "uri") == place


def test_ls_shows_abstracts_get_shows_all_and_each_as_deep_as_asked(edge: Any, scripted: ScriptedBox) -> None:
    id_ = scripted.add("我家的猫叫豆包").id
    for command, level in (
        (["ls"], "LEVEL_ABSTRACT"),
        (["ls", "--json"], "LEVEL_DETAIL"),
        (["ls", "--json", "--level", "abstract"], "LEVEL_ABSTRACT"),
        (["ls", "edge://public", "--level", "overview"], "LEVEL_OVERVIEW"),
        (["ls", f"edge://public/turn/{id_}"], "LEVEL_ABSTRACT"),
        (["get", id_], "LEVEL_DETAIL"),
        (["get", f"edge://public/turn/{id_}", "--level", "abstract"], "LEVEL_ABSTRACT"),
    ):
        done = edge(*command)
        assert done.status == 0, done.err
        assert "我家的猫叫豆包" in done.out
        assert scripted.levels.pop() == level


def test_a_uri_that_names_no_single_memory_says_how_to_list_it(edge: Any, scripted: ScriptedBox) -> None:
    for uri in ("edge://public", "edge://public/note", "edge://"):
        done = edge("get", uri)
        assert done.status == 2
        assert "id" in done.err and f"edge ls {uri}" in done.err
    assert edge("get", "").status == 2


def test_another_kind_than_the_memory_s_is_not_found_and_the_right_uri_is_named(
    edge: Any, scripted: ScriptedBox
) -> None:
    id_ = scripted.add("话").id
    for command in ("get", "ls"):
        done = edge(command, f"edge://public/note/{id_}")
        assert done.status == 5
        assert f"edge://public/turn/{id_}" in done.err
    assert json.loads(edge("ls", f"public/turn/{id_}", "--json").out)["memories"][0]["id"] == id_


def test_where_nothing_is_the_reader_is_told_and_the_program_gets_an_empty_list(
    edge: Any, scripted: ScriptedBox
) -> None:
    done = edge("ls", "edge://work/nothing")
    assert (done.status, done.out) == (0, "")
    assert "edge ls" in done.err
    assert json.loads(edge("ls", "edge://work/nothing", "--json").out) == {"memories": []}
