"""Whether two sentences say the same, and in what they differ, without a model.

A cosine cannot tell 红茶 from 绿茶, Friday from Thursday or "I smoke" from "I don't". So a sentence is read into a
plain form (`read`): numbers and times as values, words that mean the same as one of them, words without weight gone.
What two sentences do not share after that is a difference, also where nobody thought of it: there is no list of
differences to be complete, only one of what makes none, and each of its lines is a claim that can be checked.
"""

from edge.admission.agree.change import takes_place_of
from edge.admission.agree.read import LONGEST, counts_from_today, read
from edge.admission.agree.turned import same_but_for_light

__all__ = ["LONGEST", "counts_from_today", "read", "same_but_for_light", "takes_place_of"]
