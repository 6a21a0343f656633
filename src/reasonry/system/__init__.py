"""Services for the process that runs an engine: child processes and files, secret keys, installed packages.

processes   starts child processes, and reads regular files that a user names
masking     masks the secret keys of this process in records, logs and errors
plugins     finds plugins by their entry points, and the optional parts (extras) of this installation
"""
