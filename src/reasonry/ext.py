"""The API for authors of strategies, models, tools, verifiers and stores.

The module `reasonry` has the API for users of strategies. A name in both modules means the same object.
"""

from .app.app import App as App
from .app.run_test import replay as replay
from .blocks.answers import AnswerOptions as AnswerOptions, AnswerReply as AnswerReply
from .blocks.answers import AnswerState as AnswerState, FinalAnswer as FinalAnswer
from .core.bodies import Answers as Answers, Body as Body, Conclusion as Conclusion
from .core.bodies import EffectFailed as EffectFailed, Move as Move, Request as Request, Thought as Thought
from .core.bodies import fail as fail, go as go, replies as replies, request as request, stay as stay
from .core.budget import Budget as Budget
from .core.effects import Ask as Ask, CallTool as CallTool, Effect as Effect, RunStrategy as RunStrategy
from .core.effects import Verify as Verify
from .core.events import Answered as Answered, Failed as Failed, Finished as Finished
from .core.events import ToolReturned as ToolReturned, Usage as Usage, Verified as Verified
from .blocks.short_strategy import Loop as Loop, Prompt as Prompt, ask as ask, ask_all as ask_all
from .blocks.short_strategy import strategy as strategy
from .core.strategy import Field as Field, NoOptions as NoOptions, Stage as Stage, Strategy as Strategy
from .blocks.toolcard import ToolCard as ToolCard
from .compare.explore import Explored as Explored, explore as explore
from .engine.observer import Observer as Observer
from .engine.ports import Model as Model, OnText as OnText, Question as Question
from .engine.ports import SamplingModel as SamplingModel, Tool as Tool, Verifier as Verifier
from .errors import ConflictError as ConflictError, ModelError as ModelError, NotFoundError as NotFoundError
from .errors import ToolError as ToolError
from .models.scripted import ScriptedModel as ScriptedModel
from .core.readings import Unreadable as Unreadable
from .records import Found as Found, RunStore as RunStore, SessionChange as SessionChange
from .records import SessionFilters as SessionFilters, SessionRow as SessionRow, SessionStore as SessionStore
from .records import SessionView as SessionView, Store as Store, Sweep as Sweep, ThoughtRow as ThoughtRow
from .surfaces.python.streaming import BudgetEvent as BudgetEvent, CallEvent as CallEvent
from .surfaces.python.streaming import EndEvent as EndEvent, ScoreEvent as ScoreEvent
from .surfaces.python.streaming import StreamEvent as StreamEvent, ThoughtEvent as ThoughtEvent
from .surfaces.python.streaming import VerdictEvent as VerdictEvent
