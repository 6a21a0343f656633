"""The process around an engine: its children and files, its keys, its installed packages.

processes   child processes, and regular files named by a user
masking     the keys of this process, kept out of records, logs and errors
plugins     packages found by their entry points, and optional parts of an installation
"""
