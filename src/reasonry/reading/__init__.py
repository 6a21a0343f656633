"""Read replies: find data in text and coerce it to a form; lists, scores, numbers, votes. Pure.

The package knows texts and forms, but no effects, events or strategies. It does not interpret prose: questions ask for
a form or a mark, and a model makes any judgement of language.
"""
