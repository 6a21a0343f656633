"""From what a user writes after `--model` to a model, and from what the environment offers to a default."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct

from ..engine.ports import Model
from ..errors import UsageError
from ..extras import has_extra, install_hint
from ..masking import SECRETS
from ..plugins import installed_plugins, split_plugin
from .local_ollama import base_url, installed_models
from .reasoning import reasons_by_itself

FORMS = (
    "openai:NAME",
    "anthropic:NAME",
    "google:NAME",
    "zai:NAME",
    "ollama:NAME",
    "PROVIDER:NAME (any that pydantic-ai knows)",
    "openai-compatible:URL#NAME",
    "scripted:FILE",
    "recorded:FILE",
    "PACKAGE/NAME:TEXT (of an installed package)",
    "offline",
)
"""What may stand after `--model`."""

OPENAI_URL = "https://api.openai.com/v1"
ZAI_URL = "https://api.z.ai/api/paas/v4"
_PORTS = {"http": 80, "https": 443}


class Offer(Struct, frozen=True):
    """A provider that is taken when its key is there.

    Args:
        keys: Environment variables, any of which is enough.
        model: Taken by default: a quick one of the maker's whose price is known.
        extra: The extra of this package that brings it; empty: it is there.
    """

    provider: str
    keys: tuple[str, ...]
    model: str
    extra: str = ""


OFFERS = (
    Offer("openai", ("OPENAI_API_KEY",), "openai:gpt-6-luna"),
    Offer("anthropic", ("ANTHROPIC_API_KEY",), "anthropic:claude-haiku-5-5", "anthropic"),
    Offer(
        "google",
        ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
        "google:gemini-3.5-flash-lite",
        "google",
    ),
    Offer("zai", ("ZAI_API_KEY",), "zai:glm-4.7"),
)
"""In the order in which they are taken."""


def open_model(
    spec: str, environ: Mapping[str, str] | None = None, *, keyed_by: Iterable[str] | None = None
) -> Model:
    """Open the model a user named. Nothing is sent yet.

    Args:
        spec: One of `FORMS`.
        environ: Where keys and base URLs are looked up; None: the process's own. pydantic-ai's providers look
            there in any case.
        keyed_by: The models that the operator named, where this one is taken from a record: `REASONRY_API_KEY`
            is sent only where one of them is served. None: the operator named this one.

    Raises:
        UsageError: It is none of the legal forms, or something it needs is missing.
    """
    environ = os.environ if environ is None else environ
    SECRETS.keep_environment(environ)
    model = _open(spec, environ, keyed_by)
    if hasattr(model, "reasons"):
        model.reasons = reasons_by_itself(model.name, environ)  # pyright: ignore[reportAttributeAccessIssue]
    return model


def _open(spec: str, environ: Mapping[str, str], keyed_by: Iterable[str] | None) -> Model:
    if split_plugin(spec) is not None:
        return installed_plugins(environ).open("models", spec, _check_model)
    kind, rest = check_model_form(spec)
    if kind == "openai-compatible" and keyed_by is not None:
        _check_key_stays(rest, environ, keyed_by)
    if kind in _OPENERS:
        return _OPENERS[kind](rest, environ)
    from .providers import ProviderModel, check_provider_extra, is_provider

    check_provider_extra(kind)
    if not is_provider(kind):
        raise _no_such_form(kind, rest)
    return ProviderModel(f"{kind}:{rest}")


def check_model_form(spec: str) -> tuple[str, str]:
    """Return the kind of a model and what follows its colon; opens no file and asks no server.

    Raises:
        UsageError: It is none of the legal forms, or its URL cannot be used.
    """
    kind, colon, rest = spec.strip().partition(":")
    if split_plugin(spec) is not None:
        return kind, rest
    if not colon:
        kind, rest = kind.lower(), ""
    if kind == "offline":
        is_form = not rest and not colon
    else:
        is_form = bool(rest) and (kind in _OPENERS or re.fullmatch(r"[A-Za-z0-9][\w.-]*", kind) is not None)
    if not is_form:
        raise _no_such_form(kind, rest)
    if kind == "openai-compatible":
        _url_and_name(rest)
    return kind, rest


def _check_model(model: Any) -> Model:
    missing = [name for name in ("answer", "close") if not callable(getattr(model, name, None))]
    if missing:
        raise UsageError(f"a {type(model).__name__} is no model: it has no {' and no '.join(missing)}")
    return model


def _no_such_form(kind: str, rest: str) -> UsageError:
    # What follows the colon may hold a key, so it is not shown.
    shown = repr(kind[:40] + ":" if rest else kind[:40])
    message = f"there is no model {shown}; --model takes {', '.join(FORMS)}"
    return UsageError(message, option="model", choices=list(FORMS))


def _openai(rest: str, environ: Mapping[str, str]) -> Model:
    from .openai_compatible import OpenAICompatibleModel

    key, url = environ.get("OPENAI_API_KEY"), environ.get("OPENAI_BASE_URL")
    if not key and not url:
        raise UsageError("openai: needs a key; set OPENAI_API_KEY", option="model")
    return OpenAICompatibleModel(url or OPENAI_URL, rest, api_key=key, name=f"openai:{rest}")


def _zai(rest: str, environ: Mapping[str, str]) -> Model:
    from .openai_compatible import OpenAICompatibleModel

    key = environ.get("ZAI_API_KEY")
    if not key:
        raise UsageError("zai: needs a key; set ZAI_API_KEY", option="model")
    return OpenAICompatibleModel(
        environ.get("ZAI_BASE_URL") or ZAI_URL,
        rest,
        api_key=key,
        name=f"zai:{rest}",
        seller="zai",
        takes_n=False,
        takes_schema=False,
    )


def _ollama(rest: str, environ: Mapping[str, str]) -> Model:
    from .openai_compatible import OpenAICompatibleModel

    key = environ.get("OLLAMA_API_KEY")
    return OpenAICompatibleModel(base_url(environ), rest, api_key=key, name=f"ollama:{rest}", takes_n=False)


def _compatible(rest: str, environ: Mapping[str, str]) -> Model:
    from .openai_compatible import OpenAICompatibleModel

    url, name = _url_and_name(rest)
    return OpenAICompatibleModel(url, name, api_key=_key_for(url, environ))


def _url_and_name(rest: str) -> tuple[str, str]:
    from .openai_compatible import checked_url

    url, hash_sign, name = rest.partition("#")
    if not hash_sign or not name.strip():
        raise UsageError("a name is missing: openai-compatible:URL#NAME", option="model", choices=list(FORMS))
    return checked_url(url), name.strip()


def _key_for(url: str, environ: Mapping[str, str]) -> str | None:
    """Return the key to send to a URL; OpenAI's own goes only where the environment says it belongs."""
    if environ.get("REASONRY_API_KEY"):
        return environ["REASONRY_API_KEY"]
    home = environ.get("OPENAI_BASE_URL") or OPENAI_URL
    return environ.get("OPENAI_API_KEY") if _origin(url) == _origin(home) else None


def _check_key_stays(rest: str, environ: Mapping[str, str], keyed_by: Iterable[str]) -> None:
    """Raise UsageError if a key would go to a server that only a record names: whoever wrote it could collect keys."""
    url, _ = _url_and_name(rest)
    named = [spec.strip().removeprefix("openai-compatible:").partition("#")[0] for spec in keyed_by]
    if environ.get("REASONRY_API_KEY") and _origin(url) not in map(_origin, named):
        raise UsageError(
            f"the run's record names a model at {url}; REASONRY_API_KEY is sent only to a server that you name "
            f"yourself: give --model openai-compatible:{rest}, set REASONRY_MODEL to it, or unset the key",
            option="model",
        )


def _origin(url: str) -> tuple[str, str, int | None]:
    try:
        parts = urlsplit(url)
        return parts.scheme, parts.hostname or "", parts.port or _PORTS.get(parts.scheme)
    except ValueError:
        return "", "", None


def _open_scripted(rest: str, environ: Mapping[str, str]) -> Model:
    from .scripted import ScriptedModel

    return ScriptedModel.open(rest)


def _open_recorded(rest: str, environ: Mapping[str, str]) -> Model:
    from .recorded import RecordedModel

    return RecordedModel(rest)


def _offline(rest: str, environ: Mapping[str, str]) -> Model:
    from .offline import OfflineModel

    return OfflineModel()


_OPENERS: dict[str, Callable[[str, Mapping[str, str]], Model]] = {
    "openai": _openai,
    "zai": _zai,
    "ollama": _ollama,
    "openai-compatible": _compatible,
    "scripted": _open_scripted,
    "recorded": _open_recorded,
    "offline": _offline,
}


def is_configured(environ: Mapping[str, str]) -> bool:
    """Whether the environment names a model or holds a provider's key; asks no server."""
    keys = [key for offer in OFFERS for key in offer.keys if _can_reach(offer)]
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
        if key is not None and _can_reach(offer):
            return offer.model, f"{key} is set"
    names = installed_models(environ)
    if names:
        return f"ollama:{names[0]}", f"Ollama runs at {base_url(environ)}"
    from .offline import OfflineModel

    if OfflineModel.serves(problem):
        return "offline", "no key is set and no Ollama runs, and this problem needs no language model"
    raise UsageError(
        "no model is set, and this problem needs one: give --model, or set REASONRY_MODEL or "
        "OPENAI_API_KEY, ANTHROPIC_API_KEY, GOOGLE_API_KEY, ZAI_API_KEY, or start Ollama",
        option="model",
        choices=list(FORMS),
    )


def _can_reach(offer: Offer) -> bool:
    return not offer.extra or has_extra(offer.extra)


def describe_models(environ: Mapping[str, str] | None = None) -> list[dict[str, Any]]:
    """Return what could be used here, a row each: whether it is ready, and a note; never a key's value."""
    environ = os.environ if environ is None else environ
    rows = [_offer_row(offer, environ) for offer in OFFERS]
    names = installed_models(environ)
    local = f"at {base_url(environ)}: {', '.join(names[:5])}" if names else "start Ollama and pull a model"
    rows.append(_row("ollama:NAME", bool(names), local))
    others = has_extra("providers")
    known = "any that pydantic-ai knows" if others else install_hint("providers")
    rows.append(_row("PROVIDER:NAME", others, known))
    key = (
        "REASONRY_API_KEY is set"
        if environ.get("REASONRY_API_KEY")
        else "REASONRY_API_KEY, if it wants a key"
    )
    rows.append(_row("openai-compatible:URL#NAME", True, key))
    rows += [_row(form, True, "no key, no network") for form in ("scripted:FILE", "recorded:FILE", "offline")]
    return rows


def _offer_row(offer: Offer, environ: Mapping[str, str]) -> dict[str, Any]:
    key = next((name for name in offer.keys if environ.get(name)), None)
    missing = [] if _can_reach(offer) else [install_hint(offer.extra)]
    missing += [] if key else [f"set {offer.keys[0]}"]
    return _row(f"{offer.provider}:NAME", not missing, ", ".join(missing) or f"{key} is set")


def _row(model: str, ready: bool, note: str) -> dict[str, Any]:
    return {"model": model, "ready": ready, "note": note}
