"""Open the model that `--model` names, or find the default model for the environment."""

import contextlib
import os
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from ..engine.ports import Model
from ..errors import UsageError
from ..system.masking import SECRETS
from ..system.plugins import check_extra, has_extra, installed_plugins, split_plugin
from ..text import did_you_mean
from .known import reasons_by_itself
from .objects import as_model

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
    "command:PROGRAM (such as claude -p; the question comes on its standard input)",
    "PACKAGE/NAME:TEXT (of an installed package)",
    "offline",
)
"""The legal forms of `--model`."""

_PORTS = {"http": 80, "https": 443}
PROBE_S = 0.2
"""The time limit for a local Ollama to list its models, in seconds."""
_MAX_LIST_BYTES = 1_000_000


class Provider(Struct, frozen=True):
    """A provider, and the default model to use if the provider's key is set.

    Args:
        keys: Environment variables for the key. One of them is enough.
        model: The default model, which is a fast model with a known price.
        extra: The extra of this package that supports the provider. Empty if the API is OpenAI-compatible.
        url: The base URL of an OpenAI-compatible API. The variable `PROVIDER_BASE_URL` overrides it.
        traits: Other arguments for `OpenAICompatibleModel`.
    """

    name: str
    keys: tuple[str, ...]
    model: str
    extra: str = ""
    url: str = ""
    traits: Mapping[str, Any] = {}


PROVIDERS = (
    Provider(
        "zai",
        ("ZAI_API_KEY",),
        "glm-4.7",
        url="https://api.z.ai/api/paas/v4",
        traits={"seller": "zai", "takes_n": False, "takes_schema": False},
    ),
    Provider("openai", ("OPENAI_API_KEY",), "gpt-6-luna", url="https://api.openai.com/v1"),
    Provider("anthropic", ("ANTHROPIC_API_KEY",), "claude-haiku-5-5", "anthropic"),
    Provider("google", ("GOOGLE_API_KEY", "GEMINI_API_KEY"), "gemini-3.5-flash-lite", "google"),
)
"""The providers, in order of preference."""

_OPENAI_LIKE = {provider.name: provider for provider in PROVIDERS if provider.url}
_OVER_HTTP = (*_OPENAI_LIKE, "ollama", "openai-compatible")


def open_model(
    spec: str, environ: Mapping[str, str] | None = None, *, keyed_by: Iterable[str] | None = None
) -> Model:
    """Open a model by its name, without sending a request.

    Args:
        spec: One of `FORMS`.
        environ: The environment to read keys and base URLs from. Defaults to the environment of the process, which
            pydantic-ai's providers always read.
        keyed_by: The models that the operator named, if `spec` comes from a record. `REASONRY_API_KEY` is sent only to
            servers of these models. None means that the operator named `spec`.

    Raises:
        UsageError: The name has no legal form, or a key or a package is missing.
    """
    environ = os.environ if environ is None else environ
    SECRETS.keep_environment(environ)
    kind, rest = check_model_form(spec)
    if keyed_by is not None:
        _check_record(spec, kind, rest, environ, keyed_by)
    model = _open(spec, kind, rest, environ)
    if hasattr(model, "reasons"):
        model.reasons = reasons_by_itself(model.name, environ)  # pyright: ignore[reportAttributeAccessIssue]
    return model


def _open(spec: str, kind: str, rest: str, environ: Mapping[str, str]) -> Model:
    if split_plugin(spec) is not None:
        return installed_plugins().open("models", spec, as_model)
    match kind:
        case "offline":
            from .offline import OfflineModel

            return OfflineModel()
        case "scripted" | "recorded":
            from .scripted import RecordedModel, ScriptedModel

            return ScriptedModel.open(rest) if kind == "scripted" else RecordedModel(rest)
        case "command":
            from .command import CommandModel

            return CommandModel(rest, environ)
        case _ if kind in _OVER_HTTP:
            return _open_over_http(kind, rest, environ)
        case _:
            from .providers import ProviderModel

            extra = next((each.extra for each in PROVIDERS if each.name == kind), "")
            near = "" if extra else did_you_mean(kind, [each.name for each in PROVIDERS])
            check_extra(extra or "providers", f"the model {kind[:40]}:… is not built in.{near} It")
            try:
                return ProviderModel(f"{kind}:{rest}")
            except ValueError:
                raise _no_such_form(kind, rest) from None


def check_model_form(spec: str) -> tuple[str, str]:
    """Split a model's name into its kind and the part after the colon. No server is asked.

    Raises:
        UsageError: The name has no legal form, or its URL cannot be used.
    """
    kind, colon, rest = spec.strip().partition(":")
    if split_plugin(spec) is not None:
        return kind, rest
    if not colon:
        kind, rest = kind.lower(), ""
    if bool(rest) == (kind == "offline") or not re.fullmatch(r"[A-Za-z0-9][\w.-]*", kind):
        raise _no_such_form(kind, rest)
    if kind == "openai-compatible":
        _url_and_name(rest)
    return kind, rest


def _no_such_form(kind: str, rest: str) -> UsageError:
    forms = {form.partition(":")[0]: form for form in FORMS}
    if kind in forms and not rest:
        return UsageError(f"the model {kind} is written {forms[kind]}", option="model", choices=list(FORMS))
    # The text after the colon may hold a key, so it is not shown.
    shown = repr(kind[:40] + ":" if rest else kind[:40])
    near = "" if rest else _with_its_maker(kind)
    near = near or did_you_mean(kind, filter(str.islower, forms))
    near = near or " A model is written PROVIDER:NAME, or offline; `reasonry solve --help` lists the forms."
    return UsageError(f"there is no model {shown}.{near}", option="model", choices=list(FORMS))


def _with_its_maker(name: str) -> str:
    """Suggest the full name of a model that was named without its provider. Return "" if the model is unknown."""
    from genai_prices.data_snapshot import get_snapshot

    with contextlib.suppress(LookupError):
        maker = get_snapshot().find_provider(name, None, None).id
        if any(provider.name == maker for provider in PROVIDERS):
            return f" Did you mean {maker}:{name}?"
    return ""


def _open_over_http(kind: str, rest: str, environ: Mapping[str, str]) -> Model:
    from .openai_compatible import OpenAICompatibleModel

    if kind == "openai-compatible":
        url, name = _url_and_name(rest)
        return OpenAICompatibleModel(url, name, api_key=_key_for(url, environ))
    name = f"{kind}:{rest}"
    if kind == "ollama":
        key, url = environ.get("OLLAMA_API_KEY"), ollama_url(environ)
        return OpenAICompatibleModel(url, rest, api_key=key, name=name, takes_n=False)
    provider = _OPENAI_LIKE[kind]
    setting = provider.keys[0]
    key, url = environ.get(setting), environ.get(f"{kind.upper()}_BASE_URL")
    if not key and not url:
        raise UsageError(f"{kind}: needs a key; set {setting}", option="model")
    return OpenAICompatibleModel(url or provider.url, rest, api_key=key, name=name, **provider.traits)


def _url_and_name(rest: str) -> tuple[str, str]:
    from .openai_compatible import checked_url

    url, hash_sign, name = rest.partition("#")
    if not hash_sign or not name.strip():
        raise UsageError("a name is missing: openai-compatible:URL#NAME", option="model", choices=list(FORMS))
    return checked_url(url), name.strip()


def _key_for(url: str, environ: Mapping[str, str]) -> str | None:
    """Return the API key that may be sent to a URL. None if there is none."""
    if environ.get("REASONRY_API_KEY"):
        return environ["REASONRY_API_KEY"]
    home = environ.get("OPENAI_BASE_URL") or _OPENAI_LIKE["openai"].url
    return environ.get("OPENAI_API_KEY") if _origin(url) == _origin(home) else None


def _check_record(
    spec: str, kind: str, rest: str, environ: Mapping[str, str], keyed_by: Iterable[str]
) -> None:
    """Refuse a program, or a server that would get the API key, unless the operator named it.

    The name `spec` comes from a run's record, and other users can write records.
    """
    if kind == "command" and spec not in keyed_by:
        raise UsageError(
            f"the run's record names the program {rest!r} as its model; a program is run only if you name it: give "
            f"--model {shlex.quote(spec)}, or list it in REASONRY_MODELS",
            option="model",
        )
    if kind != "openai-compatible" or not environ.get("REASONRY_API_KEY"):
        return
    url, _ = _url_and_name(rest)
    named = [each.strip().removeprefix("openai-compatible:").partition("#")[0] for each in keyed_by]
    if _origin(url) not in map(_origin, named):
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


def is_configured(environ: Mapping[str, str]) -> bool:
    """Whether the environment names a model or contains a provider's key. No server is asked."""
    return bool(environ.get("REASONRY_MODEL", "").strip()) or any(_usable_providers(environ))


def default_model(problem: str, environ: Mapping[str, str]) -> tuple[str, str]:
    """Return the default model and the reason for it.

    The default is the first available model in this list: `REASONRY_MODEL`, the model of a provider whose key is in
    the environment, a model of a local Ollama, and `offline` if `offline` can solve the problem.

    Raises:
        UsageError: No model is available; the message names the variables to set.
    """
    if environ.get("REASONRY_MODEL", "").strip():
        return environ["REASONRY_MODEL"].strip(), "REASONRY_MODEL is set"
    for provider, key in _usable_providers(environ):
        return f"{provider.name}:{provider.model}", f"{key} is set"
    names = installed_models(environ)
    if names:
        return f"ollama:{names[0]}", f"Ollama runs at {ollama_url(environ)}"
    from ..puzzles.reading import read_puzzle

    if read_puzzle(problem) is not None:
        return "offline", "no key is set and no Ollama runs, and this problem needs no language model"
    keys = ", ".join(provider.keys[0] for provider in PROVIDERS)
    raise UsageError(
        f"no model is set, and this problem needs one: give --model, or set REASONRY_MODEL or {keys}, or start Ollama",
        option="model",
        choices=list(FORMS),
    )


def _usable_providers(environ: Mapping[str, str]) -> Iterator[tuple[Provider, str]]:
    """Yield each provider that is installed and has a key, with the name of the key's variable."""
    for provider in PROVIDERS:
        key = next((name for name in provider.keys if environ.get(name, "").strip()), "")
        if key and (not provider.extra or has_extra(provider.extra)):
            yield provider, key


# -- a local Ollama


def ollama_url(environ: Mapping[str, str]) -> str:
    """Return the base URL of Ollama: `OLLAMA_BASE_URL`, `OLLAMA_HOST`, or the default."""
    stated = environ.get("OLLAMA_BASE_URL", "").strip()
    if stated:
        return stated.rstrip("/")
    host = environ.get("OLLAMA_HOST", "").strip() or "127.0.0.1"
    parts = urlsplit(host if "://" in host else f"http://{host}")
    scheme = parts.scheme if parts.scheme == "https" else "http"
    name = parts.hostname or "127.0.0.1"
    # A server that is bound to all addresses is reached at the loopback address.
    name = "127.0.0.1" if name in ("0.0.0.0", "::") else f"[{name}]" if ":" in name else name
    return f"{scheme}://{name}:{parts.port or 11434}/v1"


def installed_models(environ: Mapping[str, str]) -> list[str]:
    """List the models of a running Ollama, in the order that Ollama reports. The list is empty if no Ollama runs."""
    # Imported only here, because a command with a named model does not need these modules.
    from http.client import HTTPException
    from urllib.request import ProxyHandler, build_opener

    url = f"{ollama_url(environ).removesuffix('/v1')}/api/tags"
    try:
        with build_opener(ProxyHandler({})).open(url, timeout=PROBE_S) as answer:
            document: Any = msgspec.json.decode(answer.read(_MAX_LIST_BYTES))
        return [model["name"] for model in document["models"] if isinstance(model["name"], str)]
    except (OSError, ValueError, HTTPException, msgspec.MsgspecError, KeyError, TypeError):
        return []
