"""Sessions record the thoughts of an outside agent. This package checks, stores, exports and imports the sessions.

The rules of this package keep the number, stage, branch and revision of each thought consistent. The package `engine`
runs strategies. Neither `guided` nor `engine` imports the other package.
"""
