"""Sessions of an outside agent's thoughts: the rules of a thought, lines and branches, history, export and import.

Here belongs what keeps a thinker's number, stage, branch and revision straight. Runs, which think by themselves, are in
`engine`; neither room knows the other.
"""
