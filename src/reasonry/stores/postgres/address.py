"""Reads the URL of a PostgreSQL store, and derives a name that is safe to show."""

import re
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlencode, urlsplit

import psycopg
from psycopg.conninfo import conninfo_to_dict

from ...errors import UsageError
from ...system.masking import SECRETS

SCHEMA = "reasonry"
"""The default schema of a store's tables."""


class Address(NamedTuple):
    """The address of a store.

    Attributes:
        url: The URL for the client library. It may contain a password.
        name: The URL without its secret parts, which is safe to show.
        schema: The database schema that contains the store's tables (parameter `reasonry_schema` of the URL).
        allows_unsafe: Whether the server may acknowledge writes that a crash can undo (`reasonry_unsafe_commit=1`).
    """

    url: str
    name: str
    schema: str
    allows_unsafe: bool

    def __repr__(self) -> str:
        """Return the address without its secret parts."""
        return f"Address({self.name!r})"


def read_address(url: str) -> Address:
    """Read the URL of a store, or raise UsageError."""
    try:
        parts = urlsplit(url)
        query = parse_qsl(parts.query, keep_blank_values=True)
        own = {name: value for name, value in query if name.startswith("reasonry_")}
        rest = urlencode([(name, value) for name, value in query if name not in own])
        if parts.port == 0:
            raise ValueError
        # `urlunsplit` changes an address that has no host. To the client library, `#` does not begin a fragment.
        tail = (f"?{rest}" if rest else "") + (f"#{parts.fragment}" if parts.fragment else "")
        bare = f"postgresql://{parts.netloc}{parts.path}{tail}"
        parameters: dict[str, Any] = conninfo_to_dict(bare)
    except (ValueError, psycopg.Error):
        raise _address_error(
            "it cannot be read; in a password, write %40 for @, %3A for :, %2F for /, %3F for ?, %23 for #, %25 for %"
        ) from None
    SECRETS.keep(parameters.get("password"))
    schema = own.pop("reasonry_schema", SCHEMA)
    unsafe = own.pop("reasonry_unsafe_commit", "0")
    if own:
        raise _address_error(f"{sorted(own)[0][:60]!r} is not a parameter of a store")
    # PostgreSQL would cut a longer name.
    if not re.fullmatch("[a-z_][a-z0-9_]{0,62}", schema) or schema.startswith("pg_"):
        raise _address_error("reasonry_schema is a name of lower-case letters, digits and _")
    if unsafe not in ("0", "1"):
        raise _address_error("reasonry_unsafe_commit is 0 or 1")
    user, at, where = parts.netloc.rpartition("@")
    shown = [(name, value) for name, value in query if name in ("host", "port", "user") and value]
    shown += [] if schema == SCHEMA else [("reasonry_schema", schema)]
    name = f"postgresql://{user.partition(':')[0]}{at}{where}{parts.path}"
    name += f"?{urlencode(shown, safe='/,')}" if shown else ""
    return Address(bare, name, schema, unsafe == "1")


def _address_error(why: str) -> UsageError:
    # The message does not repeat the URL, which may contain a password.
    return UsageError(
        f"the URL of the PostgreSQL store is not valid: {why}",
        choices=["postgresql://USER:PASSWORD@HOST:PORT/DATABASE"],
        option="store",
    )
