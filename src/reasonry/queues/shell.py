"""The queue of the store that `REASONRY_STORE` names, for Procrastinate's own command line.

`procrastinate --app reasonry.queues.shell.app shell` lists the jobs of the queue.
"""

import os

from ..stores import open_store
from .worker import app_of, postgres_store

app = app_of(postgres_store(open_store(os.environ.get("REASONRY_STORE")), "procrastinate"))
