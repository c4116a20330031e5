"""How much of a memory is shown: a sentence, a paragraph, or all of it. Only an ellipsis is ever added.

Extractive: what is shown are sentences of the memory, chosen by the words of a question, or by how near they are to the
whole (the centroid of Radev et al., "Centroid-based summarization of multiple documents", 2004, on words), names and
numbers counted up. No model, no disk: some 0.2 ms for a memory.
"""

from __future__ import annotations

import itertools
import math
import re
import unicodedata
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from edge.recall.courtesy import is_courtesy, opening
from edge.recall.line import Span, flatten, shorten
from edge.types import Level

ABSTRACT_LIMIT = 80
OVERVIEW_LIMIT = 200

# A sentence ends here. Not behind the number of a list, an initial or a title, nor inside `v1.5` or `a.b`.
_END = re.compile(
    r"""[。！？][。！？!?]*[”’」』）)"'》】]*"""
    r"""|(?<![!?])[!?]+["')\]]*(?=\s|$|[^\x00-\x7f])"""
    r"""|(?<!\.)(?<!^\d)(?<!^\d\d)(?<!\b[A-Z])(?<!\bDr|\bMr|\bMs|\bSt|\bNo|\bvs)(?<!\bMrs)\.+["')\]]*(?=\s|$)"""
    r"""|(?<![\d.])\.(?=[^\x00-\x7f])"""
    r"""|\n|\Z""",
    re.MULTILINE,
)
# Who speaks, or what a line is about, at its beginning: `Rosalind: `, `张三：`.
_LABEL = re.compile(r"(?:[A-Za-z][\w.'-]{0,19}(?: [A-Z][\w.'-]{0,19}){0,2}(?:: |：)|[^\W\da-zA-Z_]{1,8}[:：]) ?")

_DENSE = (
    r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u1100-\u11ff\u3005\u3007\u3041-\u30ff\u3105-\u318f\u31a0-\u31ff"
    r"\u3400-\u9fff\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff"
)
_DENSE_RUN = re.compile(rf"[{_DENSE}]+")
# Text with fewer dense characters than one in so many is measured as Latin.
_DENSE_SHARE = 4
# Characters of function words: no pair with one of them is a term.
_FAINT = "的了是在我你您他她它们这那有和与就都也很不着过吗呢吧啊呀么个会要能可以对为而并但或及被把让给上下中来去说"
_RUN = re.compile(rf"(?P<dense>(?:(?![{_FAINT}])[{_DENSE}])+)|[^\W_{_DENSE}]+")

_NUMERAL = "零〇一二两三四五六七八九十百千万亿半"
_LETTERS = re.compile(r"[^\W_]")
# Dates, amounts, names in Latin letters or in quotes: what a reader looks for.
_FACTS = re.compile(
    r"[$€£¥￥]?\d+(?:[.,:/-]\d+)*[%％]?"
    rf"|[{_NUMERAL}]{{1,12}}(?:年|月|日|号|点|时|分|岁|块|元|次|天|周|斤|公里|公斤|米|人|个月|小时|分钟)|(?:周|星期)[一二三四五六日天]"
    r"|《[^《》]{1,30}》|「[^「」]{1,30}」|『[^『』]{1,30}』|“[^“”]{1,30}”|【[^【】]{1,30}】|\"[^\"]{1,30}\""
    rf"|(?<=[{_DENSE}，、《（(])[A-Za-z][\w.+#-]+|(?<=[a-z,;] )[A-Z][\w'’-]*(?: [A-Z][\w'’-]*)*"
)
# A question, or an aside in brackets: both tell less than what is simply said.
_ASIDE = re.compile(r".*[?？][”’」』）)\"']*$|[\[【（(].*[\]】）)]$")
# A fact is worth so much cosine, four of them at most. (Something for the first sentence, too, was tried: as often
# worse as better to read in encyclopaedia articles, worse in conversations.)
_FACT, _FACTS_AT_MOST, _BESIDE = 0.06, 4, 0.6
# A single character of Chinese among the terms says little beside a pair.
_CRUMB = 0.2
# From this length on a word may be a stem with its ending, or is as rare as any.
_STEM, _RARE = 4, 6
# Behind all letters of scripts whose words have spaces between them, nearly.
_LATIN = "\u0e00"
# The full stop and the sharp of the lexicon's terms.
_AS_WRITTEN = str.maketrans("\ue000\u266f", ".#")


@dataclass(slots=True)
class _Sentence:
    start: int
    end: int
    # Who speaks, as the line has it; empty where the sentence stands behind it or nobody is named.
    label: str
    courtesy: bool
    facts: list[Span] = field(default_factory=list)
    sought: list[Span] = field(default_factory=list)
    # Weight of the different terms of the question that it has.
    near: float = 0.0
    # Nearness to the whole, facts counted up.
    central: float = 0.0

    @property
    def rank(self) -> tuple[bool, float, float]:
        return not self.courtesy, self.near, self.central


def abstract(text: str, terms: Sequence[str] = (), limit: int | None = None) -> str:
    """One sentence on one line, with who said it where the line begins with that: the nearest to the terms (as
    ports.Lexicon gives them for a query), without any of them the nearest to the whole. A courtesy never is, while
    there is something else.

    A sentence longer than `limit` characters (None: 80, in scripts with spaces between words 160) is shortened around
    the terms in it, else around its names and numbers.
    """
    flat, sentences = _ranked(text, terms)
    if limit is None:
        limit = _narrow(flat, ABSTRACT_LIMIT)
    if not sentences:
        return shorten(flatten(text), limit)
    return _shown(flat, max(sentences, key=lambda sentence: sentence.rank), limit)


def overview(text: str, terms: Sequence[str] = (), limit: int | None = None) -> str:
    """A paragraph on one line: the whole where it fits into `limit` characters (None: 200, in scripts with spaces
    between words 400), else the best sentences in the order of the text.
    """
    whole = flatten(text)
    if limit is None:
        limit = _narrow(whole, OVERVIEW_LIMIT)
    if len(whole) <= limit:
        return whole
    flat, sentences = _ranked(text, terms)
    if not sentences:
        return shorten(whole, limit)
    chosen: list[_Sentence] = []
    for sentence in sorted(sentences, key=lambda sentence: sentence.rank, reverse=True):
        if chosen and sentence.courtesy:
            break
        more = sorted([*chosen, sentence], key=lambda sentence: sentence.start)
        if len(_joined(flat, more)) <= limit:
            chosen = more
        elif not chosen:
            return _shown(flat, sentence, limit)
    return _joined(flat, chosen)


def detail(text: str) -> str:
    """The original words, untouched."""
    return text


def at_level(text: str, level: Level, terms: Sequence[str] = ()) -> str:
    """The text as deep as asked; `terms` as in `abstract`."""
    if level == Level.ABSTRACT:
        return abstract(text, terms)
    return overview(text, terms) if level == Level.OVERVIEW else detail(text)


def _narrow(text: str, limit: int) -> int:
    """The limit for this text: a letter is half as wide as a character of Chinese, and says less still."""
    dense = sum(len(run) for run in _DENSE_RUN.findall(text))
    return limit if dense * _DENSE_SHARE > len(text) else 2 * limit


def _shown(flat: str, sentence: _Sentence, limit: int) -> str:
    label = sentence.label if len(sentence.label) <= limit // 2 else ""
    spans = sentence.sought or sentence.facts
    moved = [(first - sentence.start, end - sentence.start, weight) for first, end, weight in spans]
    return label + shorten(flat[sentence.start : sentence.end], limit - len(label), moved)


def _joined(flat: str, sentences: Sequence[_Sentence]) -> str:
    parts: list[str] = []
    label = ""
    for sentence in sentences:
        if parts and flat[sentence.start - 1].isspace():
            parts.append(" ")
        if sentence.label and sentence.label != label:
            parts.append(sentence.label)
        label = sentence.label or label
        parts.append(flat[sentence.start : sentence.end])
    return "".join(parts)


def _ranked(text: str, terms: Sequence[str]) -> tuple[str, list[_Sentence]]:
    """The text line by line, each of them flat, and its sentences in order."""
    flat = "\n".join(filter(None, map(flatten, text.splitlines())))
    sentences = list(_sentences(flat))
    if sentences:
        folded = flat.translate(_FOLD)
        _seek(folded, sentences, terms)
        _weigh(flat, folded, sentences)
    return flat, sentences


def _sentences(flat: str) -> Iterator[_Sentence]:
    # Labels count where the text begins with one; then each line may have its own.
    at, label = 0, ""
    for match in _END.finditer(flat):
        start, end = at, match.end()
        at = end
        while start < end and flat[start].isspace():
            start += 1
        while start < end and flat[end - 1].isspace():
            end -= 1
        own = _LABEL.match(flat, start, end)
        if own and (start == 0 or (label and flat[start - 1] == "\n")):
            label, start, own = own[0], own.end(), None
        # An opening is a sentence by itself, so that it neither wins nor stands before what does.
        said = opening(flat, start, end)
        for begin, stop in ((start, said), (said, end)):
            if _LETTERS.search(flat, begin, stop):
                shown = flat[begin:stop].rstrip()
                yield _Sentence(begin, begin + len(shown), "" if own else label, is_courtesy(shown))


def _seek(folded: str, sentences: Sequence[_Sentence], terms: Sequence[str]) -> None:
    """Notes in each sentence where the terms are; a term that is given twice counts double."""
    starts = [sentence.start for sentence in sentences]
    for term, count in Counter(terms).items():
        wanted = term.translate(_AS_WRITTEN)
        if not wanted:
            continue
        dense = bool(_DENSE_RUN.match(wanted))
        weight = count * (_CRUMB if dense and len(wanted) == 1 else 1.0)
        place, last = folded.find(wanted), -1
        while place >= 0:
            end = place + len(wanted)
            number = bisect_right(starts, place) - 1
            if number >= 0 and end <= sentences[number].end and (dense or _is_word(folded, place, end)):
                sentences[number].sought.append((place, end, weight))
                if number > last:
                    sentences[number].near += weight
                    last = number
            place = folded.find(wanted, end)


def _is_word(folded: str, start: int, end: int) -> bool:
    """Whether a word begins and ends here; the end of a longer one may follow what may be its stem."""
    begins = start == 0 or not folded[start - 1].isalnum() or bool(_DENSE_RUN.match(folded[start - 1]))
    return begins and (end - start >= _STEM or not folded[end : end + 1].isalnum())


def _weigh(flat: str, folded: str, sentences: Sequence[_Sentence]) -> None:
    """How central each sentence is. Terms are weighed by what they are, as one memory is too short to count in."""
    terms = [_terms(folded, sentence.start, sentence.end) for sentence in sentences]
    whole = Counter(itertools.chain.from_iterable(terms))
    # Length is the cheapest sign of rarity.
    squares = {term: 1.0 if term > _LATIN else (min(len(term), _RARE) / _RARE) ** 2 for term in whole}
    length = math.sqrt(sum(squares[term] * n * n for term, n in whole.items()))
    for sentence, own in zip(sentences, terms, strict=True):
        dot = sum([squares[term] * whole[term] for term in own])
        sentence.central = dot / math.sqrt(sum([squares[term] for term in own])) / length if own else 0.0
        sentence.facts = [(*match.span(), 1.0) for match in _FACTS.finditer(flat, sentence.start, sentence.end)]
        sentence.central += _FACT * min(len(sentence.facts), _FACTS_AT_MOST)
        if _ASIDE.match(flat, sentence.start, sentence.end):
            sentence.central *= _BESIDE
            sentence.near *= _BESIDE


def _terms(folded: str, start: int, end: int) -> set[str]:
    terms: set[str] = set()
    for match in _RUN.finditer(folded, start, end):
        run = match[0]
        if len(run) > 1 and match["dense"]:
            terms.update([run[at : at + 2] for at in range(len(run) - 1)])
        else:
            terms.add(run)
    return terms


class _Fold(dict[int, str]):
    """For str.translate: each character as it is searched for, one for one, so that places stay. It fills itself."""

    def __missing__(self, point: int) -> str:
        char = chr(point)
        for form in (unicodedata.normalize("NFKC", char).casefold(), char.lower()):
            if len(form) == 1:
                char = form
                break
        self[point] = char
        return char


_FOLD = _Fold()
