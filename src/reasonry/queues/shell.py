"""The queue of the store `REASONRY_STORE`, for procrastinate's own command.

`procrastinate --app reasonry.queues.shell.app shell` lists its jobs.
"""

import os

from ..stores import open_store
from .worker import app_of, postgres_store

app = app_of(postgres_store(open_store(os.environ.get("REASONRY_STORE")), "procrastinate"))
