"""The process that runs an engine: its child processes and files, its secret keys, its installed packages.

processes   starts child processes, and reads regular files that a user names
masking     masks the secret keys of this process in records, logs and errors
plugins     finds plugins by their entry points, and the optional parts (extras) of this installation
"""
