"""Which problems ask for a text (an essay, code, an e-mail, a table, a plan, a translation), and not for a value.

The whole reply to such a problem is its answer, so a problem counts as one only if its words say so. Any other problem
has an answer that must be found in the reply.
"""

from __future__ import annotations

import re
from typing import Any, Final

from ..patterns import lazy_pattern

_POLITE: Final = (
    r"(?:please|now|then|can you|could you|would you|will you|help me(?: to)?|i (?:need|want) you to|i(?:'d"
    r"| would) like"
    r" you to|bitte|kannst du|s'il vous plaît|por favor|per favore)[,\s]+"
)
_TEXT: Final = (
    r"(?:e-?mail|mail|letter|essay|poem|haiku|limerick|sonnet|song|lyrics|verses?|rhyme|story|tale|joke|riddle|report"
    r"|summary|article|blog|post|tweet|review|text|notes?|memo|message|speech|toast|script|function|class|method"
    r"|program|code|query|sql|regex|regular expression|table|plan|itinerary|timetable|schedule|recipe|checklist|faq"
    r"|guide|tutorial|instructions|description|slogans?|headlines?|caption|advert(?:isement)?|translation|dialogue"
    r"|conversation|paragraphs?|sentences|words|outline|proposal|agenda|minutes|invitation|application|cv|resume"
    r"|statement|comparison|overview|explanation|introduction|abstract|template|config(?:uration)?|docker\S*"
    r"|makefile|\w*file|workflow|repl(?:y|ies)|yaml|json|xml|html|css|markdown|page|website|component"
    r"|tests?|diff|patch|docstring"
    r"|documentation|quiz|lesson|menu|app|api|bash|python|javascript|macro|one-liner|customer|client|complaint"
    r"|enquiry|inquiry)"
)
_VALUE: Final = (
    r"(?!\W*(?:[-+]?\d|your\b|(?:the|all) (?:\w+ )?(?:answer|result|reasoning|working|steps?|number|value"
    r"|fraction|codes?)\b))"
)
"""What follows a verb where a value is asked for: `Write 0.75 as a fraction`, `explain your reasoning`."""
_ALWAYS: Final = (
    r"(?:draft|compose|rewrite|rephrase|reword|paraphrase|summari[sz]e|translate|explain|describe|define"
    r"|outline|proofread"
    r"|brainstorm|refactor|implement|prove|discuss|plan(?! \w (?:costs?|is|has|was|and|or|charges|offers)\b)"
    r"|advise|schrijf|napisz|schreibe?|verfasse|übersetze|erkläre|beschreibe|entwirf"
    r"|formuliere|skizziere|plane|écri(?:s|vez)|rédige[zr]?|traduis(?:ez)?|explique[zr]?|décri(?:s|vez)|résume[zr]?"
    r"|escrib[ea]|redact[ae]|traduc[ei]|traduz[ca]?|expli[cq]ue?|resum[ae]|scrivi|traduci|spiega|descrivi|riassumi"
    r"|escreva|descreva)\b"
)
_WITH_NOUN: Final = (
    r"(?:write|create|make|give|show|generate|prepare|design|build|develop|suggest|recommend|propose|compare|answer"
    r"|reply|respond|tell|code|draw|edit|improve|provide|erstelle|mach|gib|crée|faites?|donne[zr]?|cre[ae]|haz"
    r"|dame|crie)\b"
)
_SEVERAL: Final = (
    r"(?:write|create|suggest|propose|list|name|give(?: me)?|tell me|show me|brainstorm|nenne|liste|cite[zr]?|lista"
    r"|enumera|elenca|liste)\s+(?:me\s+)?(?:\d+|three|four|five|six|seven|eight|nine|ten|twelve|fifteen|twenty|several"
    r"|some|drei|vier|fünf|sechs|sieben|acht|neun|zehn|trois|quatre|cinq|sept|huit|dix|tres|cuatro|cinco|seis|siete"
    r"|ocho|diez|tre|quattro|cinque|sei|sette|otto|dieci|três|quatro|sete|oito|dez)\s+(?!as\b|is\b)[^\W\d_]{3,}"
)
"""Several things are asked for, each in words of its own."""
_ASKED_TO: Final = lazy_pattern(
    rf"(?:^|[.!?:;)\n]\s+|^\W+)(?:{_POLITE})?(?:{_ALWAYS}{_VALUE}"
    rf"|{_WITH_NOUN}{_VALUE}(?=[^.?!\n]{{0,90}}?\b{_TEXT}\b))"
    rf"|(?:^|[.!?:;)\n]\s+)(?:{_POLITE})?{_SEVERAL}"
    r"|请?(?:写|翻译|解释|列出|列举)|を?(?:書いて|翻訳|説明|挙げて)|に訳して",
    re.IGNORECASE,
)
_ADVICE: Final = lazy_pattern(
    r"\b(?:why (?:do|does|did|is|are|was|were|can|should|has|have)|how (?:do|can|could|should|would"
    r"|might) (?:i|we|you|one)"
    r"|how to|what (?:should|can|could) (?:i|we)|should (?:i|we)|(?:pros and cons|advantages"
    r"|difference between)(?!\W*\d))\b"
    r"|\b(?:recommend|compare)\b.*\b(?:recommend|compare)\b|\bwarum\b|\bpourquoi\b|\bpor qué\b|\bperché\b",
    re.IGNORECASE | re.DOTALL,
)
_WRITE: Final = lazy_pattern(
    rf"(?:^|[.!?:;)\n]\s+)(?:{_POLITE})?write\s+(?!(?:down|only|just|out|it|this|that|them)\b){_VALUE}",
    re.IGNORECASE,
)
"""A text is asked for, whatever it is called."""
_VALUE_ASKED: Final = lazy_pattern(
    r"\bhow (?:many|much|old|far|long|fast|tall|high|often|likely|big|large)\b|(?:^|[.!?;]\s+)(?:in |at |on "
    r"|by |to |from |of )?(?:who|when|where|which)\b[^?]*\?"
    r"|\b(?:solve|calculate|compute|evaluate|determine|find)\b|\d\s*[+*/^=×÷]\s*\d|\d\s+[-−]\s+\d"
    r"|\d-\d+\s*[=?]|\bto make \d|^use \d"
    r"|\b(?:yes or no|true or false|one word|a number|in \w+ words?"
    r"|only the (?:\w+ )?(?:number|letter|word|answer|name|result|value|option|digit|year|choice))\b"
    r"|\b(?:[A-D]\)|\([A-D]\))",
    re.IGNORECASE,
)


def is_open_task(problem: str, options: Any = None) -> bool:
    """Whether a problem asks for a text, so that a reply is the answer where nothing in it says otherwise.

    Args:
        problem: The problem as it was given.
        options: Those of the strategy: an answer that a verifier looks at is a value.
    """
    if getattr(options, "verify", False):
        return False
    text = problem.strip()
    if _ASKED_TO.search(text[:2_000]):
        return True
    head = text[:2_000]
    is_asked = _ADVICE.search(head) is not None or _WRITE.search(head) is not None
    return is_asked and not _VALUE_ASKED.search(text)


def asks_for_value(problem: str) -> bool:
    """Whether a problem asks for a number, a name, a choice, or another short answer."""
    return _VALUE_ASKED.search(problem) is not None
