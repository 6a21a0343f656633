"""Reading what was replied: data found in a text and fitted to a form; lists, scores, numbers, votes. Pure.

It knows texts and forms, and nothing of effects, events or strategies.
"""
