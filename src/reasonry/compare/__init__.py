"""Strategies side by side on a user's own problems.

judging     the problems of a file, and whether an answer to one of them is right
datasets    problems made by rule, one generator a file; gym has those of reasoning-gym
problem_set the problems that a user names, from a file or a data set
comparison  every strategy on every problem, each as a run of its own, found again when asked for again; and about how
            many calls and how much money are missing
standings   how accurate each strategy is and how surely, and which one is worth its price
recorded_table  a comparison as one file, from which anyone computes its table again
trial_table problems × strategies, kept in the store while they fill
"""
