"""The operator's list of models, verifiers, tools and documents that agents and HTTP requests may name.

A call over MCP or HTTP cannot name a URL, a file or a command. A name that is not on the list is refused without any
lookup, so that a refusal reveals nothing about files and ports.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Literal
from urllib.parse import urlsplit

from msgspec import Struct

from ..errors import UsageError

OFFLINE = "offline"
ARITHMETIC = "arithmetic:"

SETTINGS = {
    "model": "REASONRY_MODELS",
    "verifier": "REASONRY_VERIFIERS",
    "tools": "REASONRY_TOOLS",
    "documents": "REASONRY_DOCUMENTS",
}
"""Maps each argument to the environment variable that lists the names for this argument."""

_NAME = re.compile(r"[\w][\w. -]{0,63}")


class AllowList(Struct, frozen=True):
    """The models, verifiers, tools and documents that the operator listed, by name.

    A name stands for a value of `--model` or a similar option. `offline` and `arithmetic:TARGET` are always allowed.
    """

    models: Mapping[str, str] = {}
    verifiers: Mapping[str, str] = {}
    tools: Mapping[str, str] = {}
    documents: Mapping[str, str] = {}
    default_model: str | None = None
    """The model for calls that name no model. It is `REASONRY_MODEL`, or else the first listed model, or else None."""

    @staticmethod
    def from_environ(environ: Mapping[str, str]) -> AllowList:
        """Read the list from `REASONRY_MODEL` and the variables in `SETTINGS`.

        The form is `SPEC,NAME=SPEC,…`. If an entry has no name, its value is the name. But the name of
        `openai-compatible:URL#NAME` is `NAME`. This function opens no file and sends nothing.

        Raises:
            UsageError: A name has two values, `offline` names another model, or an entry has the wrong form; `option`
                is the variable.
        """
        models, verifiers, tools, documents = (_entries(environ, argument) for argument in SETTINGS)
        if default := environ.get("REASONRY_MODEL", "").strip():
            _check_form("model", default, "REASONRY_MODEL")
            names = (name for name, spec in models.items() if spec == default)
            models = {next(names, _short_name(default)): default, **models}
        if models.get(OFFLINE, OFFLINE) != OFFLINE:
            setting = SETTINGS["model"]
            raise UsageError(f"{setting}: {OFFLINE} already names a model", option=setting)
        default = default or next(iter(models.values()), None)
        return AllowList(models, verifiers, tools, documents, default)

    @property
    def model_names(self) -> list[str]:
        """The names of the allowed models."""
        return list(dict.fromkeys((*self.models, OFFLINE)))

    def model(self, name: object) -> str | None:
        """Return the model with this name. If the name is None, return the default model.

        Raises:
            UsageError: The name is not listed; `choices` lists the names.
        """
        if name is None:
            return self.default_model
        return _entry("model", name, {OFFLINE: OFFLINE, **self.models})

    def hide_addresses(self, text: str) -> str:
        """Hide the addresses of model servers in a text. The name of a listed model replaces its address."""
        names = dict[str, str]()
        for name, spec in self.models.items():
            url = spec.partition(":")[2].rpartition("#")[0]
            names |= {url: "its server", urlsplit(url).netloc: "its server", spec: name}
        for address in sorted(filter(None, names), key=len, reverse=True):
            text = text.replace(address, names[address])
        return text

    def complete_schema(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        """Add the listed names to a tool's input schema. `tools` and `documents` are removed if none are listed."""
        verifiers = list(self.verifiers)
        arithmetic = {"type": "string", "pattern": f"^{ARITHMETIC}"}
        either = {"anyOf": [arithmetic, {"type": "string", "enum": verifiers}]} if verifiers else arithmetic
        names = {
            "model": {"type": "string", "enum": self.model_names},
            "verifier": {"description": ", ".join([f"{ARITHMETIC}TARGET", *verifiers]), **either},
            "tools": _names_schema(self.tools),
            "documents": _names_schema(self.documents),
        }
        members = {name: names.get(name, member) for name, member in schema["properties"].items()}
        properties = {name: member for name, member in members.items() if member is not None}
        return {**schema, "properties": properties}

    def verifier(self, name: object) -> str | None:
        """Return the verifier with this name. If the name is None, return None.

        Raises:
            UsageError: The name is not listed; `choices` lists the names.
        """
        if name is None or (isinstance(name, str) and name.startswith(ARITHMETIC)):
            return name
        return _entry("verifier", name, self.verifiers, (f"{ARITHMETIC}TARGET",))

    def has_verifier(self, spec: str) -> bool:
        """Whether a verifier in a run's record is allowed."""
        return spec.startswith(ARITHMETIC) or spec in self.verifiers.values()

    def all_of(self, argument: Literal["tools", "documents"], names: Sequence[str]) -> tuple[str, ...]:
        """For each name, return the tool or document that the operator lists under this name.

        Raises:
            UsageError: A name is not listed; `choices` lists the names.
        """
        listed = self.tools if argument == "tools" else self.documents
        return tuple(_entry(argument, name, listed) for name in dict.fromkeys(names))


def _names_schema(listed: Collection[str]) -> dict[str, Any] | None:
    return {"type": "array", "items": {"type": "string", "enum": list(listed)}} if listed else None


def _entry(argument: str, name: object, listed: Mapping[str, str], forms: Sequence[str] = ()) -> str:
    if isinstance(name, str) and name in listed:
        return listed[name]
    choices = [*forms, *listed]
    # The message omits the name, which may contain a key.
    raise UsageError(
        f"{argument} takes a name that the operator of this server has listed ({SETTINGS[argument]}): "
        f"{', '.join(choices) or 'none is'}",
        option=argument,
        choices=choices,
    )


def _entries(environ: Mapping[str, str], argument: str) -> dict[str, str]:
    entries: dict[str, str] = {}
    setting = SETTINGS[argument]
    for written in environ.get(setting, "").split(","):
        name, equals, spec = map(str.strip, written.partition("="))
        if not (equals and spec and _NAME.fullmatch(name)):
            # There is no name; an equals sign is part of a URL or a path.
            spec = written.strip()
            name = _short_name(spec) if argument == "model" else spec
        if not name:
            continue
        _check_form(argument, spec, setting)
        if entries.setdefault(name, spec) != spec:
            message = f"{setting}: {name[:60]} stands for two things; name one of them: NAME={name[:60]}"
            raise UsageError(message, option=setting)
    return entries


def _short_name(model: str) -> str:
    return model.rpartition("#")[2] if "://" in model else model


def _check_form(argument: str, spec: str, setting: str) -> None:
    from ..models.choose import check_model_form
    from ..tools.catalog import split_tools
    from ..tools.verifiers import check_verifier_form

    checks: Mapping[str, Callable[[str], object]] = {
        "model": check_model_form,
        "verifier": check_verifier_form,
        "tools": split_tools,
        "documents": str,
    }
    try:
        checks[argument](spec)
    except UsageError as error:
        details: dict[str, Any] = {**error.details, "option": setting}
        raise UsageError(f"{setting}: {error.message}", **details) from None
