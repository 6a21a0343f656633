"""Reasonry: the reasoning strategies of the literature as durable, inspectable state machines.

    result = await reasonry.solve("Use 4, 9, 10 and 13 to make 24", strategy="tree_of_thoughts", model="offline")

Each public name is imported at its first use, so that `import reasonry` is quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import ext as ext, machine as machine, stages as stages, tree_machine as tree_machine
    from .surfaces.python.public import *
else:
    _MODULES = ("ext", "machine", "stages", "tree_machine")

    def __getattr__(name: str) -> Any:
        if name in _MODULES:
            return import_module(f".{name}", __name__)
        if name == "__all__":
            names = vars(import_module(".surfaces.python.public", __name__))
            return [*_MODULES, *(each for each in names if not each.startswith("_"))]
        names = {} if name.startswith("_") else vars(import_module(".surfaces.python.public", __name__))
        if name in names:
            return names[name]
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted(__getattr__("__all__"))
