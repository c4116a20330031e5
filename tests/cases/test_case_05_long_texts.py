"""Case 5: texts without a place to cut (huggingface/tokenizers#1539, shinpr/mcp-local-rag#202)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from grpc_calls import IngestState, Wire, message, turn

if TYPE_CHECKING:
    from conftest import Box

MEGABYTE = "a" * 1_000_000
# 833 characters without a mark between them; the words repeat at no period that a cut could hide behind.
WORDS = (
    "春眠不觉晓处处闻啼鸟夜来风雨声花落知多少白日依山尽黄河入海流"
    "欲穷千里目更上一层楼红豆生南国秋来发几枝愿君多采撷此物最相思"
)
TAIL = "门禁口令是蓝色大象"
CHINESE = (WORDS * 20)[: 833 - len(TAIL)] + TAIL


def test_a_megabyte_of_one_letter_is_stored_in_pieces_while_recalls_are_answered(box: Box) -> None:
    with Wire(box.address) as wire, ThreadPoolExecutor(4) as threads:
        wire.say("钥匙在阳台第三个花盆下面", space="public")
        call = wire.memory.Ingest(iter([message(turn(MEGABYTE, space="work"))]))
        (stored,) = next(call).results
        assert stored.state == IngestState.INGEST_STATE_STORED
        assert len(stored.memory_ids) == -(-len(MEGABYTE) // 300)
        answers = list(threads.map(lambda _: wire.recall("钥匙在哪里", "public"), range(40)))
        for answer in answers:
            assert answer.hits[0].memory.text == "钥匙在阳台第三个花盆下面"
            assert answer.hits[0].signals.semantic > 0
            assert not answer.notes
        # The vectors of half a million tokens take the model most of a minute: they were under way all the time.
        assert next(facts for facts in wire.status().spaces if facts.name == "work").pending > 0
        call.cancel()


def test_the_tail_of_a_long_text_without_marks_is_found(wire: Wire, space: str) -> None:
    assert len(CHINESE) == 833
    wire.say(CHINESE, *(f"别的事情第{n}件" for n in range(10)), space=space)
    for query in ("门禁口令是什么", "蓝色大象", TAIL):
        best = wire.recall(query, space).hits[0].memory
        assert best.text.endswith(TAIL), query
        assert best.pieces > 1
    whole = sorted((memory for memory in wire.listed(space) if memory.pieces > 1), key=lambda memory: memory.piece)
    assert all(len(memory.text) <= 300 for memory in whole)
