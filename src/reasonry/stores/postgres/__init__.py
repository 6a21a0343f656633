"""Runs and sessions in a PostgreSQL database, which any number of processes and computers may share.

The work on rows is that of the SQLite store; what is different stands here: how a database is named and connected to,
which of its words differ, its tables, and its index of texts.
"""

from __future__ import annotations

from .store import PostgresStore

__all__ = ["PostgresStore"]
