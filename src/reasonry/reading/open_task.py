"""The kind of thing that a problem asks for, and whether a reply has one.

Rule 1: a task is open, so that the reply is the answer where nothing in it says otherwise, only if its words ask for a
        text; where a value may be wanted, it is none.
Rule 2: words alone answer a problem only if they may: `How many …?` wants a number, `Who …?` a name, `A or B?` one of
        the two, a letter more than one line. What a reply lacks shows in every language and wording, a refusal does
        not.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from itertools import takewhile
from typing import Any, Final

from ..patterns import lazy_pattern
from .names import plain_name
from .numbers import NUMBER_WORD, WIDE

_POLITE: Final = (
    r"(?:(?:please|now|then|can you|could you|would you|will you|help me(?: to)?|i (?:need|want) you to"
    r"|i(?:'d| would) like you to|bitte|kannst du|s'il vous plaît|por favor|per favore)[,\s]+)*"
)
_BEGINS: Final = rf"(?:^|[.!?:;)\n]\s+|^\W+){_POLITE}"
"""Where a sentence begins, and how it may."""
_WRITE: Final = (
    r"(?:write|draft|compose|rewrite|rephrase|reword|paraphrase|summari[sz]e|translate|explain|describe|define|outline"
    r"|proofread|review|critique|brainstorm|refactor|shorten|polish|make (?:this|it|the following)\b"
    r"|fix (?:the|this|my)\b"
    r"|implement|prove|discuss|advise|compare|(?:answer|reply|respond) to"
    r"|answer this (?!\w* ?(?:question|problem|riddle|quiz))"
    r"|(?:turn|convert|put) (?:this|these|the following)\b[^.?!\n]{0,90}?\binto"
    r"|(?:turn|convert|put|format)\b[^.?!\n]{0,90}?\b(?:in)?to (?:an? )?(?:json|yaml|toml|xml|csv|html|markdown|table)"
    r"|show\b[^.?!\n]{1,90}?\bas an? (?!\w* ?(?:fraction|decimal|percentage|number))"
    r"|plan(?! \w (?:costs?|is|has|was|and|or|charges|offers)\b)"
    r"|extract|schrijf|napisz|fasse|schreibe?|verfasse|übersetze|erklär\w*|beschreibe|entwirf|formuliere|skizziere|plane"
    r"|écri(?:s|vez)|rédige[zr]?|traduis(?:ez)?|explique[zr]?|décri(?:s|vez)|résume[zr]?"
    r"|escrib[ea]|redact[ae]|traduc[ei]|traduz[ca]?|expli[cq]\w*|resum[ae]|scrivi|traduci|spiega|descrivi|riassumi"
    r"|escreva|descreva)\b"
    r"(?!\W*(?:(?:it|this|that|them) )?(?:[-+]?\d|down\b"
    r"|(?:the|your|all|each|every) (?:\w+ )?(?:answers?|result|reasoning|working|steps?|numbers?|value|fraction"
    r"|codes?|(?:first|next|last) [^.\n]{0,30}(?:terms?|numbers?|primes?|digits?|multiples))\b))"
)
"""Verbs that ask for words, but where a value is wanted: `Write 0.75 as a fraction`, `explain your reasoning`."""
_MAKE: Final = (
    r"(?:create|produce|make|give|show|generate|prepare|design|build|develop|suggest|recommend|propose|tell|code|draw|edit"
    r"|improve|provide|list|name|come up with|erstelle|mach|gib|nenne|crée|faites?|donne[zr]?|cr[ei]a|cree|haz|dame"
    r"|faça|crie|prepar[ae]|prépare[zr]?|cite[zr]?|lista|enumera|elenca)\b(?:[- ](?:me|us|moi|mir|uns))?\s+"
    r"(?:an?|some|several|two|three|four|five|six|seven|eight|nine|ten|twelve|\d+|eine[nr]?|einige|drei|vier|fünf"
    r"|sechs|sieben|acht|neun|zehn|une?|des|trois|quatre|cinq|sept|huit|dix|una?|tres|cuatro|cinco|seis|siete|ocho"
    r"|diez|tre|quattro|cinque|sei|sette|otto|dieci|uma?|três|quatro|sete|oito|dez)\s+"
    r"(?!(?:as|is|from|with|using|out)\b|(?:\w+ )?(?:number|integer|value|fraction|decimal|percentage|date|letter"
    r"|digit|word|figure|choice|option|answer|choix|réponse|respuesta|risposta|resposta)s?\b)(?:to-do|(?:\w+-)*[^\W\d_]{3,})"
)
"""Verbs that ask for something new, and not for a value: `make a table`, `give me three reasons`."""
_TEXT: Final = (
    r"(?:essay|e-?mail|letter|poem|haiku|story|recipe|script|function|program|regex|regular expression|query|sql"
    r"|command|one-liner|dockerfile|(?:docker-)?compose file|config(?:uration)?|itinerary|speech|toast|headline"
    r"|slogan|tagline|press release|checklist|rezept|brief|gedicht|rede|recette|lettre|poème|discours|receta"
    r"|carta|poema|discurso|ricetta|lettera|poesia|discorso|receita|redação|description|bio|caption|announcement"
    r"|agenda|readme)"
)
_NEED: Final = (
    r"(?:(?:i|we) (?:need|want)|i['’]d like|ich (?:brauche|möchte|hätte gern)|j['’]ai besoin d['’]|je (?:voudrais|veux)"
    r"|necesito|quiero|ho bisogno di|vorrei|mi serve|preciso de|quero) ?"
)
_NAMED: Final = lazy_pattern(
    rf"{_BEGINS}{_NEED}(?:an?|some|eine?n?|une?|una?|uma?|um)\s+(?:[\w'-]+\s+){{0,3}}{_TEXT}\b"
    rf"|{_BEGINS}(?:(?:(?:need|want|looking for)\s+(?:an?\s+)?)?"
    rf"(?:(?!(?:an?|the|this|that|each|every|his|her|its|my|our)\b)[\w'-]+\s+)?{_TEXT}"
    r"(?:\s[\w-]+(?:\([^()\n]*\))?)?(?:\s+(?:that|for|to|which|with|without|about|in)\b|[:,])"
    r"|(?:\d+|three|four|five|six|seven|eight|nine|ten|twelve|some|a few)\s+(?:[\w'-]+\s+){0,2}"
    r"(?:names|ideas|tips|slogans|titles|headlines|synonyms)\b)",
    re.IGNORECASE,
)
"""A text that is asked for by its name alone: `Recipe for banana bread`, `SQL for PostgreSQL: …`."""
_ASKED_TO: Final = lazy_pattern(
    rf"{_BEGINS}(?:{_WRITE}|{_MAKE})|,\s+{_POLITE}{_WRITE}"
    rf"|\b(?:write|draft|compose) (?:me |us )?an? (?:[\w'-]+ ){{0,2}}{_TEXT}\b"
    r"|\bwhat does (?:this|the following) \w+ do|\bwhat does\b[^?\n]*\bmean\b|\bwas (?:bedeutet|heißt)\b"
    r"|\bque (?:signifie|veut dire)|qué significa|(?:cosa|che) (?:significa|vuol dire)|que significa|什么意思"
    r"|どういう意味"
    r"|\bwhen (?:should|do|does|can) (?:i|we|you|one)\b|\bwann (?:benutzt|verwendet|soll|muss|nimmt)\b"
    r"|\bcuándo (?:uso|usar|se usan?|debo|hay que)\b|\bquand (?:est-ce qu['’]on|utilise|dois|faut|doit)"
    r"|\bquando (?:si usa|uso|devo|usar|se usa)\b|\bwhat (?:can|should|could) (?:i|we) (?:do|say"
    r"|wear|cook|pack)\b"
    r"|\bdifferences? between (?!\W*\d)[^?\d]*\?|\b(?:one-liner|regex|script|command)(?: (?:to|for|that)\b|:)"
    r"|\b(?:json (?:object|array|only)|only json)\b|(?:^|[.!?]\s)(?:\w+ )?(?:tips|tipps|conseils|consejos"
    r"|consigli|dicas)\b"
    r"|\b(?:how do (?:you|i) say|wie sagt man|comment dit-on|cómo se dice|come si dice|como se diz)\b|怎么说"
    r"|\bas (?:json|yaml|xml|csv|html)\b|\bm['’]expliquer|explicarme|spiegarmi"
    r"|\b(?:kannst|könntest|können|könnten) (?:du|sie)\b[^?\n]{0,80}\b(?:erklären|beschreiben|schreiben|übersetzen"
    r"|zusammenfassen|formulieren|umschreiben|verbessern)\b|区别|(?:方|コツ|違い|理由|例|意味|方法|おすすめ)を?[^。\n]{0,6}教えて"
    r"|请?(?:写|翻译|解释|列出|列举)|を?(?:書いて|作って|翻訳|説明|挙げて|まとめて)|に(?:訳|直)して",
    re.IGNORECASE,
)
_EXPLAINED: Final = lazy_pattern(
    r"\b(?:(?:why|how) (?:do|does|did|is|are|was|were|can|could|should|would|might|has|have)|how to|what if"
    r"|what (?:should|can|could|would|might|makes?|happens|role|effects?|impact)|what are (?:some|the \w+ \w+)"
    r"|(?:pros and cons|advantages|difference between)(?!\W*\d)|warum|pourquoi|por qu[eéê]|perché|unterschied zwischen"
    r"|(?:diferencia|différence|differenza|diferença) (?:entre|tra|fra))\b(?!\W*\d)",
    re.IGNORECASE,
)
"""Questions whose answer is an explanation."""
_VALUE_ASKED: Final = lazy_pattern(
    r"\bwhat (?:does|will|would)\b[^?\n]{1,90}\breturn\b|"
    r"\bhow (?:many|much|old|far|long|fast|tall|high|often|likely|big|large)\b|(?:^|[.!?;]\s+)(?:in |at |on "
    r"|by |to |from |of )?(?:who|when|where|which|what(?:'s| is| was))\b[^?]*\?"
    r"|(?:^|[.!?:;]\s+|\b(?:to|please|(?<!how can )(?<!how do )(?<!how could )you|and|then)\s+)"
    r"(?:solve|calculate|compute|evaluate|determine|find|berechne|löse|bestimme|ermittle|calcule[zr]?|résou[sd]\w*"
    r"|trouve[zr]?|calcula|resuelve|halla|encuentra|resolva|encontre|calcola|risolvi|trova|oblicz|bereken)\b"
    r"|[求几谁]|计算|多少|解方程|哪[个些里]|何[人個年時本日枚]|いくつ|いくら|いつ|どこ|誰|答えなさい|\d\s*[+*/^=×÷]\s*\d|\d\s+[-−]\s+\d|\d-\d+\s*[=?]"
    r"|\b(?:yes or no|true or false|one word|a number|in \w+ words?"
    r"|only the (?:\w+ )?(?:number|letter|word|answer|name|result|value|option|digit|year|choice))\b"
    r"|(?:(?<![\w(])[A-D]\)|(?<!\w)\([A-D]\))|(?<!\w)A[.．、][^\n]*?\n?[^\n]*?(?<!\w)B[.．、]",
    re.IGNORECASE,
)


_NUMBER_ASKED: Final = lazy_pattern(
    r"\bhow (?:many|much|old|far|long|fast|tall|high|deep|wide|heavy|often|big|large)\b"
    r"|\b(?:what|which|in which) year\b"
    r"|\bwhat(?:['’]s| is| was) the (?:\w+ ){0,2}(?:sum|total|average|mean|median|difference|product|number"
    r"|population|integer"
    r"|price|cost|area|volume|distance|speed|probability|percentage|age|height|length|weight|temperature)\b"
    r"|\bwie ?(?:viele?|alt|lange?|hoch|weit|groß|schwer|schnell|tief|breit|teuer|oft)\b|\b(?:in )?welche[ms] jahr\b"
    r"|\bcombien\b|\bquel(?:le)? (?:année|âge|prix|distance|est le (?:nombre|total|prix))\b"
    r"|\bcuánt[oa]s?\b|\b(?:en )?qué año\b|\bquant[oaie]\b|\b(?:in )?(?:che|quale) anno\b|\bquant[oa]s\b"
    r"|\b(?:em )?(?:que|qual) ano\b|\bile\b|\bhoe(?:veel| (?:oud|lang|ver|hoog|groot|snel))\b|\bсколько\b"
    r"|\b(?:convert|compute|calculate|berechne|rechne|calcule\w*|calcula|calcola|converti|converta|convierte"
    r"|oblicz|bereken)\b[^?\n]*\d"
    r"|几[个岁年天时分小块米公]|多少|いくつ|いくら|何(?:個|人|年|歳|時|分|度|日|円|本|枚|匹|回|キロ|メートル|パーセント)",
    re.IGNORECASE,
)


def is_open_task(problem: str, options: Any = None) -> bool:
    """Whether a problem asks for a text, so that a reply is the answer where nothing in it says otherwise.

    Args:
        problem: The problem as it was given.
        options: Those of the strategy: an answer that a verifier looks at is a value.
    """
    return not getattr(options, "verify", False) and _asks_for_text(problem)


@lru_cache(maxsize=32)
def _asks_for_text(problem: str) -> bool:
    head = problem.strip()[:2_000]
    if _ASKED_TO.search(head):
        return True
    return bool(_EXPLAINED.search(head) or _NAMED.search(head)) and not asks_for_value(problem)


@lru_cache(maxsize=32)
def asks_for_value(problem: str) -> bool:
    """Whether the words of a problem ask for one value: a number, a name, a choice."""
    return _VALUE_ASKED.search(problem) is not None


def asks_anything(problem: str) -> bool:
    """Whether a problem asks a question or for a value; one that does not names the text that is wanted."""
    return asks_for_value(problem) or any(mark in problem for mark in "?？=か")


def asks_for_number(problem: str) -> bool:
    """Whether the words of a problem ask for a number."""
    return _NUMBER_ASKED.search(problem) is not None


# -- whether a reply has it

_ASKING: Final = frozenset(
    re.findall(
        r"\w+",
        "what which whose who how why when where does did many much long have has had with that this from they them"
        " their there will would could should into than then each every the and for are was were you can its not all"
        " any one two out get find give take takes after per",
    )
)
"""Words of a question that do not say what is asked for."""
_PAIR: Final = lazy_pattern(r"(?=([\u4e00-\u9fff]{2}))")
_NAME_ASKED: Final = lazy_pattern(
    r"(?:^|[.!?:;,¿]\s*)\W*(?:(?:in|at|on|by|from|to|de|en|em|por|par|à|a|w|z|von|aus) )?(?:who|whose|whom|where"
    r"|which (?:person|city|country|town|river|artist|author|writer|company|president|king|queen|language)"
    r"|what is the (?:capital|name)|wer|wo|wen|wem|welche[rs]? (?:stadt|land|fluss|autor\w*|person)|qui|où"
    r"|quelle (?:ville|personne)|quién|dónde|qué (?:ciudad|país)|chi|dove|quale (?:città|paese)|quem|onde"
    r"|(?:que|qual) (?:cidade|país)|kto|gdzie|wie is|wie was|waar|кто|где)\b[^.!?]*\?",
    re.IGNORECASE,
)
_ARTICLES: Final = frozenset(
    ["ein", "eine", "einen", "einem", "einer", "un", "une", "una", "uno", "um", "uma"]
)
"""Words for one that say no number in a sentence."""
_NAME: Final = lazy_pattern(r"(?<=[^\W\d_] )[A-ZÀ-ÞĀ-ŽА-Я]\w+|[A-Z]{2,}|[\"'“«„`*]\S|[\d\u3040-\u9fff]")
"""A word with a capital letter inside a sentence, initials, a quote, or a text without capital letters."""
_CHOICE: Final = lazy_pattern(
    r"(?P<first>(?:[^\s,;:?]+ ){0,2}[^\s,;:?]+),? (?:or|oder|ou|czy|или|o(?= (?:el|la|los|las|il|lo|un|una"
    r"|\d+)\b)) (?P<second>[^?;:.]{1,40}?)\?",
    re.IGNORECASE,
)
_LONG_TEXT: Final = lazy_pattern(
    r"(?:\b(?:write|draft|compose|schreib\w*|verfass\w*|rédige\w*|écri\w+|escrib\w*|redact\w*|scriv\w*|escrev\w*|napisz"
    r"|schrijf)\b[^.?!\n]{0,60}\b(?:essay|letter|bio|speech|story|report|article|e-?mail|review|recipe"
    r"|blog post|brief|rede"
    r"|aufsatz|bericht|geschichte|lettre|discours|histoire|rapport|carta|discurso|ensayo|informe|reseña|cuento|lettera"
    r"|discorso|tema|relazione|recensione|racconto|redação|resenha|conto|list|przemówienie)\b)"
    r"|写[^。？！\n]{0,20}(?:信|文章|作文|演讲|报告|故事|邮件)|(?:手紙|作文|スピーチ|レポート|物語|メール)を?書",
    re.IGNORECASE,
)
_PAGES: Final = lazy_pattern(r"\b(?:pages?|seiten?|páginas?|pagin[ae])\b", re.IGNORECASE)
_WORDS: Final = lazy_pattern(
    r"(?P<before>[^.!?\n]{0,20})(?<!\d)(?P<count>\d{2,4})[- ](?:words?|mots|palabras|parole|wörtern?|palavras)\b"
    r"(?! or (?:less|fewer)| max)",
    re.IGNORECASE,
)
_AT_MOST: Final = lazy_pattern(
    r"\b(?:max\w*|under|most|up to|than|within|below|höchstens|unter|moins|menos|máxim\w+|meno|massimo|this"
    r"|the|following)\b",
    re.IGNORECASE,
)
_POEM: Final = lazy_pattern(
    r"(?:write|compose|schreib\w*|écri\w+|rédige\w*|escrib\w*|escrev\w*|scriv\w*)\b[^.?!\n]{0,30}"
    r"\b(?:poem|sonnet|limerick|poème|gedicht|poesia|poema)\b",
    re.IGNORECASE,
)
_ENGLISH_WANTED: Final = lazy_pattern(
    r"(?:in(?:to)?|to) english\b|(?:auf|ins) englische?\b|en anglais|al inglés|in inglese|(?:para|em) (?:o )?inglês"
    r"|英語に|[成为]英[语文]",
    re.IGNORECASE,
)
_SHORT_WANTED: Final = lazy_pattern(
    r"\b(?:short|brief|quick|one|two|three|1|2|3|lines?|sentences?|words?|subject|titles?|openings?|first|last|closing"
    r"|greeting|sign-?off|kurz\w*|knapp\w*|satz|sätze|betreff|courte?s?|brève?|phrases?|objet|cort[oa]s?|breves?|frases?"
    r"|asunto|fras[ei]|oggetto|curt[oa]s?|assunto|krótk\w+|korte?)\b|短|简短|一句|件名|主题",
    re.IGNORECASE,
)
_MIN_LONG: Final = 200
"""Characters from which on one paragraph may be a letter or an essay; a third of it in Chinese and Japanese."""
_MIN_PAGES: Final = 600
"""Characters of a text of pages."""
_MIN_WORDS: Final = 4
"""Words from which on an answer is a sentence."""
_MIN_REPEATED: Final = 5
"""Words of a task from which on it is no chance that a text ends with them."""


def may_answer(text: str, problem: str) -> bool:
    """Whether a sentence has the kind of thing that a problem asks for: a number, a name, one of two."""
    if len(text.split()) < _MIN_WORDS and not WIDE.search(text):
        return True
    if _restates(text, problem):
        return False
    if asks_for_number(problem) and not _numbers(text) - _numbers(problem):
        return False
    choice = _CHOICE.search(problem)
    if choice is None:
        return (
            _NAME_ASKED.search(problem) is None or _NAME.search(text) is not None or is_about(text, problem)
        )
    sentences = re.split(r"(?<=[.!?])\s+", text.strip())
    ends = unicodedata.normalize("NFKC", f"{sentences[0]} {sentences[-1]}")
    words = {plain_name(word)[:5] for word in ends.split()}
    first, second = ([plain_name(word) for word in option.split()] for option in choice.groups())
    # The words that tell the options apart: `the left one or the right one`.
    names = [word for word in first + second if (word in first) != (word in second)]
    return any(name[:5] in words for name in names)


def _numbers(text: str) -> set[str]:
    return {number.casefold() for number in NUMBER_WORD.findall(text)} - _ARTICLES


def _restates(text: str, problem: str) -> bool:
    """Whether a text says what is asked (`You want to know how many …`), and no more."""
    asked, words = (re.findall(r"[^\W_]{3,}|\d+", each.casefold()) for each in (problem, text))
    stems = {word[:5] for word in asked}
    new = [word for word in words if word[:5] not in stems]
    is_known = 2 * len(new) < len(words) and not any(map(NUMBER_WORD.search, new))
    return is_known and asks_for_number(problem)


def may_be_text(text: str, problem: str) -> bool:
    """Whether a text is as long and as wide as a problem wants it written, and more than the task."""
    if (wanted := _WORDS.search(problem)) and not _AT_MOST.search(wanted["before"]):
        return 2 * len(text.split()) >= int(wanted["count"]) or WIDE.search(text) is not None
    is_other = (
        _ENGLISH_WANTED.search(problem) and WIDE.search(text) and not re.search(r"[A-Za-z]{2} ?[a-z]", text)
    )
    if is_other or _repeats_task(text, problem):
        return False
    if "\n" in text:
        return True
    if _POEM.search(problem):
        return "/" in text
    wants_long = _LONG_TEXT.search(problem)
    if wants_long and _PAGES.search(problem):
        return len(text) >= _MIN_PAGES
    if not wants_long or _SHORT_WANTED.search(problem):
        return True
    return len(text) >= (_MIN_LONG // 3 if WIDE.search(text) else _MIN_LONG)


def _repeats_task(text: str, problem: str) -> bool:
    """Whether a text ends as its task does, from the middle of the instruction on: `You want me to translate …`."""
    words, asked = (re.findall(r"\w+", each.casefold()) for each in (text, problem))
    same = sum(
        1 for _ in takewhile(bool, (a == b for a, b in zip(reversed(words), reversed(asked), strict=False)))
    )
    return len(words) > same >= _MIN_REPEATED and 10 * same >= 7 * len(asked)


def is_about(text: str, problem: str) -> bool:
    """Whether a text has a word of the question that a problem ends with."""
    question = problem.rstrip(" ?").rpartition(". ")[2]
    words = {word[:5] for word in re.findall(r"[^\W\d_]{3,}", question.casefold()) if word not in _ASKING}
    pairs = {*_PAIR.findall(question)}.intersection(_PAIR.findall(text))
    return bool(pairs) or any(word[:5] in words for word in re.findall(r"[^\W\d_]{3,}", text.casefold()))
