"""Strategies side by side on a user's own problems.

judging     the data set, and whether an answer to one of its problems is right
comparison  every strategy on every problem, each as a run of its own, found again when asked for again
standings   how accurate each strategy is and how surely, and which one is worth its price
report      all of it as one page of HTML, with the plots
"""
