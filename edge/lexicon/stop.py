"""Words that say nothing of what a question is about: every memory has them, or they only make it a question."""

from __future__ import annotations

_ENGLISH = (
    "a an and are as at be been but by can could did do does for from had has have he her him his how i if in is it "
    "its me my of on or our she so that the their them they this to was we were what when where which who why will "
    "with would you your dont didnt doesnt isnt im ive whats"
)
_FUNCTION = (
    "的 了 在 是 我 你 您 他 她 它 们 我们 你们 他们 她们 吗 呢 吧 啊 呀 么 和 与 就 都 也 很 不 有 这 那 个 过 着 "
    "得 地 一个 这个 那个 可以 还 还是 一些 会 要 能"
)
_QUESTION = (
    "什么 甚么 怎么 怎样 怎么样 为什么 为何 如何 何 何时 何处 什么时候 时候 谁 哪 哪个 哪些 哪里 哪儿 哪位 哪一 哪种 "
    "多少 几 是否 曾经 请 请问 告诉"
)

# Left out of a query (never of the index) while it has other terms. The Chinese ones are words of the segmenter's
# dictionary; left out, they gain on nearly every set, and the question words more than the others.
ENGLISH = frozenset(_ENGLISH.split())
CHINESE = frozenset(_FUNCTION.split()) | frozenset(_QUESTION.split())
