"""Read replies: find JSON in text, coerce the JSON to a form, and read lists, scores, numbers and votes.

The package knows texts and forms, but no effects, events or strategies, and has no side effects. It does not interpret
prose. Questions ask for JSON or for a mark around the answer, and only a model judges language.
"""
