"""Read replies: find JSON in text, coerce it to a form, and read lists, scores, numbers and votes. No side effects.

The package knows texts and forms, but no effects, events or strategies. It does not interpret prose: questions ask for
a form or for a mark around the answer, and any judgement of language is left to a model.
"""
