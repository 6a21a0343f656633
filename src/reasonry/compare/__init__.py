"""Comparison of strategies on a user's own problems.

grading         the problems of a file, and the judges of their answers
datasets        generated problems, one generator per file; `gym` has the problems of reasoning-gym
problem_set     the problems that a user names, from a file or a data set
comparison      runs every strategy on every problem, reuses stored runs, and estimates the missing runs
standings       the accuracy of each strategy, its uncertainty, and its price
recorded_table  a comparison in one file, from which anyone can compute the table again
trial_table     the table of problems × strategies, which the store keeps while the comparison runs
explore         walks every path of a strategy to a given depth, without side effects, as a test for strategy authors
"""
