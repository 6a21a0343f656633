"""A surface as the contract sees it: a use is called by one name and with arguments of one spelling."""

from typing import Any, NamedTuple, Protocol

Given = dict[str, Any]
Document = dict[str, Any]

LIMITS = ("calls", "tokens", "usd", "seconds", "thoughts", "nodes")


class Reply(NamedTuple):
    """What comes of a use.

    Attributes:
        code: Of the error; empty: there is none.
    """

    code: str
    document: Document

    @property
    def run_id(self) -> str:
        """The run that it is about."""
        return self.document["run_id"]

    @property
    def session_id(self) -> str:
        """The session that it is about, however the drop-in tool spells it."""
        return self.document.get("session_id") or self.document["sessionId"]


def reply_of(document: Document) -> Reply:
    """Return a document as a reply."""
    return Reply(document["error"]["code"] if document.get("error") else "", document)


class Surface(Protocol):
    """One way to Reasonry, over a store of its own."""

    name: str
    store: str

    def call(self, use: str, given: Given) -> Reply:
        """Do something."""
        ...
