"""Strategies side by side on a user's own problems.

grading         the problems of a file, and the judges of their answers
datasets        problems made by rule, one generator a file; `gym` has those of reasoning-gym
problem_set     the problems that a user names, from a file or a data set
comparison      every strategy on every problem, each as a run that is found again; the cost of missing runs
standings       the accuracy of each strategy, its uncertainty, and its price
recorded_table  a comparison as one file, from which anyone computes its table again
trial_table     problems × strategies, kept in the store while they fill
explore         every path of a strategy, to a depth: a test for its author; pure
"""
