"""From what a user writes after `--model` to a model, and from what the environment offers to a default."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct

from ..errors import UsageError
from ..runtime.ports import Model
from .local_ollama import base_url, installed_models

FORMS = (
    "openai:NAME",
    "anthropic:NAME",
    "google:NAME",
    "ollama:NAME",
    "PROVIDER:NAME (any that pydantic-ai knows)",
    "openai-compatible:URL#NAME",
    "scripted:FILE",
    "recorded:FILE",
    "offline",
)
"""What may stand after `--model`."""

OPENAI_URL = "https://api.openai.com/v1"


class Offer(Struct, frozen=True):
    """A provider that is taken when its key is there.

    Args:
        keys: Environment variables, any of which is enough.
        model: Taken by default: the maker's small, quick one.
        package: What must be installed to reach it.
        extra: The extra of this package that brings it; empty: it is there.
    """

    provider: str
    keys: tuple[str, ...]
    model: str
    package: str
    extra: str = ""


OFFERS = (
    Offer("openai", ("OPENAI_API_KEY",), "openai:gpt-6-luna", "msgspec"),
    Offer("anthropic", ("ANTHROPIC_API_KEY",), "anthropic:claude-haiku-5-5", "anthropic", "anthropic"),
    Offer(
        "google",
        ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
        "google:gemini-3.5-flash-lite",
        "google.genai",
        "google",
    ),
)
"""In the order in which they are taken."""


def open_model(spec: str, environ: Mapping[str, str] | None = None) -> Model:
    """Open the model a user named. Nothing is sent yet.

    Args:
        spec: One of `FORMS`.
        environ: Where keys and base URLs are looked up; None: the process's own. pydantic-ai's providers look
            there in any case.

    Raises:
        UsageError: It is none of the legal forms, or something it needs is missing.
    """
    environ = os.environ if environ is None else environ
    kind, colon, rest = spec.strip().partition(":")
    if not colon:
        kind, rest = kind.lower(), ""
    if kind in _OPENERS and (rest or kind == "offline") and (not rest or kind != "offline"):
        return _OPENERS[kind](rest, environ)
    from .providers import ProviderModel, is_provider

    if not rest or kind in _OPENERS or not is_provider(kind):
        # What follows the colon may hold a key, so it is not shown.
        message = (
            f"there is no model {kind[:40] + ':' if rest else kind[:40]!r}; --model takes {', '.join(FORMS)}"
        )
        raise UsageError(message, option="model", choices=list(FORMS))
    return ProviderModel(f"{kind}:{rest}")


def _openai(rest: str, environ: Mapping[str, str]) -> Model:
    from .openai_compatible import OpenAICompatibleModel

    key, url = environ.get("OPENAI_API_KEY"), environ.get("OPENAI_BASE_URL")
    if not key and not url:
        raise UsageError("openai: needs a key; set OPENAI_API_KEY", option="model")
    return OpenAICompatibleModel(url or OPENAI_URL, rest, api_key=key, name=f"openai:{rest}")


def _ollama(rest: str, environ: Mapping[str, str]) -> Model:
    from .openai_compatible import OpenAICompatibleModel

    key = environ.get("OLLAMA_API_KEY")
    return OpenAICompatibleModel(base_url(environ), rest, api_key=key, name=f"ollama:{rest}", takes_n=False)


def _compatible(rest: str, environ: Mapping[str, str]) -> Model:
    from .openai_compatible import OpenAICompatibleModel, checked_url

    url, hash_sign, name = rest.partition("#")
    if not hash_sign or not name.strip():
        raise UsageError("a name is missing: openai-compatible:URL#NAME", option="model", choices=list(FORMS))
    url = checked_url(url)
    return OpenAICompatibleModel(url, name.strip(), api_key=_key_for(url, environ))


def _key_for(url: str, environ: Mapping[str, str]) -> str | None:
    """Return the key to send to a URL; OpenAI's own goes only where the environment says it belongs."""
    if environ.get("REASONRY_API_KEY"):
        return environ["REASONRY_API_KEY"]
    home = environ.get("OPENAI_BASE_URL") or OPENAI_URL
    return environ.get("OPENAI_API_KEY") if _origin(url) == _origin(home) else None


def _origin(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme, parts.netloc.lower()


def _scripted(rest: str, environ: Mapping[str, str]) -> Model:
    from .scripted import ScriptedModel

    return ScriptedModel.open(rest)


def _recorded(rest: str, environ: Mapping[str, str]) -> Model:
    from .recorded import RecordedModel

    return RecordedModel(rest)


def _offline(rest: str, environ: Mapping[str, str]) -> Model:
    from .offline import OfflineModel

    return OfflineModel()


_OPENERS: dict[str, Callable[[str, Mapping[str, str]], Model]] = {
    "openai": _openai,
    "ollama": _ollama,
    "openai-compatible": _compatible,
    "scripted": _scripted,
    "recorded": _recorded,
    "offline": _offline,
}


def is_configured(environ: Mapping[str, str]) -> bool:
    """Whether the environment names a model or holds a provider's key; asks nobody."""
    keys = [key for offer in OFFERS for key in offer.keys if _is_installed(offer.package)]
    return any(environ.get(name, "").strip() for name in ("REASONRY_MODEL", *keys))


def default_model(problem: str, environ: Mapping[str, str]) -> tuple[str, str]:
    """Return the model to take where none was named, and why it.

    In this order: `REASONRY_MODEL`, a provider whose key is in the environment, a local Ollama, `offline`
    where it can serve the problem.

    Raises:
        UsageError: There is none of them; the message says what to set.
    """
    if environ.get("REASONRY_MODEL", "").strip():
        return environ["REASONRY_MODEL"].strip(), "REASONRY_MODEL is set"
    for offer in OFFERS:
        key = next((name for name in offer.keys if environ.get(name)), None)
        if key is not None and _is_installed(offer.package):
            return offer.model, f"{key} is set"
    names = installed_models(environ)
    if names:
        return f"ollama:{names[0]}", f"Ollama runs at {base_url(environ)}"
    from .offline import OfflineModel

    if OfflineModel.serves(problem):
        return "offline", "no key is set and no Ollama runs, and this problem needs no language model"
    raise UsageError(
        "no model is set, and this problem needs one: give --model, or set REASONRY_MODEL or "
        "OPENAI_API_KEY, ANTHROPIC_API_KEY, GOOGLE_API_KEY, or start Ollama",
        option="model",
        choices=list(FORMS),
    )


def _is_installed(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except ImportError:
        return False


def describe_models(environ: Mapping[str, str] | None = None) -> list[dict[str, Any]]:
    """Return what could be used here, a row each: whether it is ready, and a note; never a key's value."""
    environ = os.environ if environ is None else environ
    rows = [_offered(offer, environ) for offer in OFFERS]
    names = installed_models(environ)
    local = f"at {base_url(environ)}: {', '.join(names[:5])}" if names else "start Ollama and pull a model"
    rows.append(_row("ollama:NAME", bool(names), local))
    others = _is_installed("pydantic_ai")
    known = "any that pydantic-ai knows" if others else "install pydantic-ai-slim"
    rows.append(_row("PROVIDER:NAME", others, known))
    key = (
        "REASONRY_API_KEY is set"
        if environ.get("REASONRY_API_KEY")
        else "REASONRY_API_KEY, if it wants a key"
    )
    rows.append(_row("openai-compatible:URL#NAME", True, key))
    rows += [_row(form, True, "no key, no network") for form in ("scripted:FILE", "recorded:FILE", "offline")]
    return rows


def _offered(offer: Offer, environ: Mapping[str, str]) -> dict[str, Any]:
    installed = _is_installed(offer.package)
    key = next((name for name in offer.keys if environ.get(name)), None)
    missing = [] if installed else [f"pip install 'reasonry[{offer.extra}]'"]
    missing += [] if key else [f"set {offer.keys[0]}"]
    return _row(f"{offer.provider}:NAME", not missing, ", ".join(missing) or f"{key} is set")


def _row(model: str, ready: bool, note: str) -> dict[str, Any]:
    return {"model": model, "ready": ready, "note": note}
