"""What `edge bench quality` has measured: ratios, figures, and tables for a reader. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from edge.cli.benches.quality import SEED, SHALLOW, TOP_K, UNRELATED, WITHOUT, Measured
from edge.cli.benches.quality_marks import NAMES, Summary, summary
from edge.cli.benches.result import Ratio, Result, quotient
from edge.cli.show import one_line, table

_HEADS = ("R@5", "R@10", "NDCG@10", "MRR", "P@5", "±NDCG", "P@5/max", "ms")
# What issues ask for: of questions that nothing can answer, so many get nothing; and few of the others do.
_REJECTED, _LOST = 0.90, 0.02
_ANSWERABLE = "answerable_lost"


def result(found: Sequence[Measured], about: dict[str, Any]) -> Result:
    """`figures` has all; the ratios are those of the contract, and how often nothing came back."""
    ratios: list[Ratio] = []
    for one in found:
        for method, made in _summaries(one).items():
            if not method.startswith(WITHOUT):
                ratios += [Ratio(f"{one.name}.{method}.{name}", getattr(made.marks, name)) for name in NAMES]
                ratios.append(Ratio(f"{one.name}.{method}.precision", made.precision))
    for one in found:
        ratios.append(Ratio(f"{one.name}.{_ANSWERABLE}", _share(one.lost)))
        ratios += [
            Ratio(f"{one.name}>{other}.rejected", _share(empty)) for other, empty in one.rejected.items() if empty
        ]
    # Each set, and each pair of sets, counts alike, whatever its number of questions.
    lost = [_share(one.lost) for one in found]
    ratios.append(Ratio(_ANSWERABLE, sum(lost) / len(lost), _LOST, False, f"{len(lost)} sets alike"))
    pairs = [_share(empty) for one in found for empty in one.rejected.values() if empty]
    if pairs:
        rejected = sum(pairs) / len(pairs)
        ratios.append(Ratio("unrelated_rejected", rejected, _REJECTED, True, f"{len(pairs)} pairs of sets alike"))
    figures = {
        "seed": SEED,
        "top_k": TOP_K,
        "unrelated_sample": UNRELATED,
        "sets": {one.name: _figures(one) for one in found},
    }
    return Result("quality", ratios, figures, about)


def text(found: Sequence[Measured], made: Result, by_category: bool) -> str:
    """The tables, set after set."""
    parts = []
    for one in found:
        pools = (
            f"{min(one.pools):,}" if min(one.pools) == max(one.pools) else f"{min(one.pools):,} to {max(one.pools):,}"
        )
        sampled = "" if one.asked == one.of else f" (a sample of {one.of:,})"
        ceiling = sum(one.ceilings) / len(one.ceilings)
        parts.append(
            f"{one_line(one.name)}: {one.asked:,} questions{sampled}, {pools} memories a pool, "
            f"P@5 {ceiling:.3f} at most; ms: median for {TOP_K} hits, the model's time left out"
        )
        summaries = _summaries(one)
        kept = {method: row for method, row in summaries.items() if not method.startswith(WITHOUT)}
        parts.append(table([("method", *_HEADS), *(_row(method, row) for method, row in kept.items())]))
        if one.noted:
            parts.append(f"{one.noted:,} deep answers say that they were cut short, or the like")
        if by_category:
            parts += _categories(one)
        if drops := _drops(summaries):
            heads = ("shallow without", "NDCG@10", "difference")
            rows = [(name, f"{ndcg:.3f}", f"{less:+.3f}") for name, (ndcg, less) in drops.items()]
            parts.append(table([heads, *rows]))
        parts.append("")
    parts.append(_relevance(made, any(any(one.rejected.values()) for one in found)))
    return "\n".join(parts)


def _relevance(made: Result, unrelated: bool) -> str:
    """How many questions get nothing where only what bears on them is asked for: few of those that the set answers, and
    most of another set's. One share says little without the other, so the target is for both.
    """
    asked = "asked for only what bears on the question"
    if not unrelated:
        lost = next(ratio.value for ratio in made.ratios if ratio.name == _ANSWERABLE)
        return (
            f"{asked}: {lost:.1%} of these questions, which the set answers, get nothing. To see how many "
            "that nothing answers get nothing, name a second set"
        )
    rows = [
        (words, f"{ratio.value:.3f}", *_target(ratio)) for ratio in made.ratios if (words := _of_nothing(ratio.name))
    ]
    return table([(f"{asked}, these get nothing", "share", "target", ""), *rows])


def _of_nothing(name: str) -> str:
    """Of whom a ratio says that nothing came back, in words; empty for any other ratio."""
    place, _, kind = name.rpartition(".")
    place = one_line(place)
    if kind == _ANSWERABLE:
        return f"{place}: questions it answers" if place else "all sets: questions they answer"
    if kind == "rejected":
        asking, _, other = place.partition(">")
        return f"{other}: questions of {asking}, which it does not answer"
    return "all pairs of sets: questions of the other" if kind == "unrelated_rejected" else ""


def _target(ratio: Ratio) -> tuple[str, str]:
    if ratio.target is None:
        return "", ""
    return f"{'at least' if ratio.at_least else 'at most'} {ratio.target:g}", "met" if ratio.met else "MISSED"


def _summaries(one: Measured, category: str | None = None) -> dict[str, Summary]:
    """By method; over one category's questions, or all."""
    places = [place for place, of in enumerate(one.categories) if category in (None, of)]
    return {
        method: summary(
            [marks[place] for place in places],
            [one.ceilings[place] for place in places],
            [one.seconds[method][place] for place in places],
        )
        for method, marks in one.marks.items()
    }


def _row(name: str, of: Summary) -> tuple[str, ...]:
    marks = tuple(f"{getattr(of.marks, name):.3f}" for name in NAMES)
    return (name, *marks, f"{of.half_width:.3f}", f"{of.precision:.3f}", f"{of.p50_ms:.2f}")


def _categories(one: Measured) -> list[str]:
    parts = []
    for category in sorted(set(one.categories)):
        rows = {method: row for method, row in _summaries(one, category).items() if not method.startswith(WITHOUT)}
        head = f"{one_line(category) or 'no category'} ({next(iter(rows.values())).n:,})"
        parts.append(table([(head, *_HEADS), *(_row(method, row) for method, row in rows.items())]))
    return parts


def _drops(summaries: dict[str, Summary]) -> dict[str, tuple[float, float]]:
    """By signal: NDCG@10 without it, and what that is more or less than with all."""
    if SHALLOW not in summaries:
        return {}
    usual = summaries[SHALLOW].marks.ndcg10
    found = {m.removeprefix(WITHOUT): s.marks.ndcg10 for m, s in summaries.items() if m.startswith(WITHOUT)}
    return {name: (ndcg, ndcg - usual) for name, ndcg in found.items()}


def _figures(one: Measured) -> dict[str, Any]:
    summaries = _summaries(one)
    return {
        "questions": one.asked,
        "of": one.of,
        "pool": {"least": min(one.pools), "mean": quotient(sum(one.pools), len(one.pools)), "most": max(one.pools)},
        "p5_ceiling": quotient(sum(one.ceilings), len(one.ceilings)),
        "methods": {method: asdict(row) for method, row in summaries.items() if not method.startswith(WITHOUT)},
        "categories": {
            category: {m: asdict(row) for m, row in _summaries(one, category).items() if not m.startswith(WITHOUT)}
            for category in sorted(set(one.categories))
        },
        "ablation": {name: {"ndcg10": ndcg, "difference": less} for name, (ndcg, less) in _drops(summaries).items()},
        "deep_noted": one.noted,
        "answerable_lost": {"n": len(one.lost), "share": _share(one.lost)},
        "rejected": {other: {"n": len(e), "share": _share(e)} for other, e in one.rejected.items() if e},
    }


def _share(flags: Sequence[bool]) -> float:
    return quotient(sum(flags), len(flags))
