"""Reading what was replied: data found in a text and fitted to a form; lists, scores, numbers, votes. Pure.

It knows texts and forms, and nothing of effects, events or strategies. It does not interpret prose: what has to be
known is asked for in a form or a mark, and what needs language to judge, a model judges.
"""
