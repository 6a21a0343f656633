"""Sessions of an outside agent's thoughts: the rules of a thought, lines and branches, history, export and import.

This room keeps the number, stage, branch and revision of an agent's thoughts consistent. Runs of strategies are in
`engine`; neither room knows the other.
"""
