"""Texts to token ids, as the model was trained to read them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from tokenizers import Regex, Tokenizer, normalizers, pre_tokenizers

from edge.embedder.manifest import Model
from edge.errors import ModelError
from edge.ports import Encoded
from edge.types import Lane

# A question of more than 8 windows (some 4,000 tokens) is cut: a recall's time must have a bound.
RECALL_WINDOWS = 8
# WordPiece makes one [UNK] of every word of more than 100 characters, so that all such words get one vector. They are
# read as words of 64 instead; words of up to 100, and so all that the model has ever seen, stay as they are.
_LONG_WORD = r"\S{64}(?=\S{37})"
# Pictures and symbols: those outside the vocabulary are spelled by their Unicode names, for the same reason.
_PICTURES = re.compile("[\u2190-\u2bff\U0001f000-\U0001faff]")


class TextEncoder:
    """The model's tokenizer, its file's padding, truncation and normaliser replaced by what the manifest says.

    Special tokens that somebody typed (`[SEP]`) are plain text. Safe from any thread.
    """

    def __init__(self, raw: bytes, model: Model) -> None:
        """`raw` is a tokenizer.json. Raises ModelError when it is none, or lacks BERT's special tokens."""
        try:
            tokenizer = Tokenizer.from_str(raw.decode("utf-8"))
        except Exception as error:  # tokenizers raises bare Exception
            raise ModelError(
                f"model {model.id}: tokenizer.json is no tokenizer ({error}); get a good copy with: "
                f"edge model pull {model.id}",
                field="model",
            ) from error
        first, last = tokenizer.token_to_id("[CLS]"), tokenizer.token_to_id("[SEP]")
        if first is None or last is None or tokenizer.pre_tokenizer is None:
            raise ModelError(
                f"model {model.id}: tokenizer.json is of another family of models ([CLS] or [SEP] is missing); "
                f"get the right one with: edge model pull {model.id}",
                field="model",
            )
        tokenizer.no_padding()
        tokenizer.no_truncation()
        tokenizer.encode_special_tokens = True
        tokenizer.normalizer = normalizers.BertNormalizer(
            clean_text=True, handle_chinese_chars=True, strip_accents=model.strip_accents, lowercase=model.lowercase
        )
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            [tokenizer.pre_tokenizer, pre_tokenizers.Split(Regex(_LONG_WORD), "isolated")]
        )
        self._tokenizer = tokenizer
        self._first, self._last = first, last
        self._room = model.max_tokens - 2
        self._instruction = model.instruction
        # Off for who searches without; the self-check compares with vectors that were made with it.
        self.instructs = True

    def encode(self, texts: Sequence[str], lane: Lane) -> list[Encoded]:
        """Windows of at most the model's length, each between [CLS] and [SEP]; a text without a token is just those."""
        prefix = self._instruction if lane is Lane.RECALL and self.instructs else ""
        prepared = [prefix + self._prepare(text) for text in texts]
        encodings = self._tokenizer.encode_batch_fast(prepared, add_special_tokens=False)
        return [self._windows(encoding.ids, lane) for encoding in encodings]

    def _prepare(self, text: str) -> str:
        if not text.isascii():
            text = _PICTURES.sub(self._spell, text)
            # Half a surrogate pair cannot pass into the tokenizer, and is nothing to it.
            text = text.encode("utf-8", "replace").decode("utf-8")
        return text

    def _spell(self, match: re.Match[str]) -> str:
        character = match.group()
        if self._tokenizer.token_to_id(character) is not None:
            return character
        name = unicodedata.name(character, "")
        return f" {name.lower()} " if name else character

    def _windows(self, ids: list[int], lane: Lane) -> Encoded:
        starts = range(0, max(1, len(ids)), self._room)
        if lane is Lane.RECALL:
            starts = starts[:RECALL_WINDOWS]
        return Encoded(tuple((self._first, *ids[start : start + self._room], self._last) for start in starts))
