"""What `reasonry` itself has of the core and of the errors: names that cost little to import."""

from ..errors import ReasonryError as ReasonryError, UsageError as UsageError, WorldError as WorldError
from .bodies import Conclusion as Conclusion, Thought as Thought
from .budget import Budget as Budget, Usage as Usage
from .loop import ask as ask, ask_all as ask_all, strategy as strategy
from .strategy import Field as Field, Stage as Stage, Strategy as Strategy
