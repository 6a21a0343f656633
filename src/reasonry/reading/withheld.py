"""Replies that hold no answer: they decline, ask back, miss what they are to work on, or only promise to do the task.

Rule 1: a word counts where it speaks to the user about the task. A text that was asked for may hold the same words: a
        letter declines an invitation, a form asks for a document.
Rule 2: an offer after an answer ("Shall I add a table?") takes nothing back.
"""

from __future__ import annotations

import re
from typing import Final

from ..patterns import lazy_pattern
from .conclusion import Subject, paragraphs
from .no_answer import OFFER, OFFERS

# -- words, a line or two for each language

_I_CANNOT: Final = "|".join(
    (
        r"i(?:['’]m| am) (?:\w+ )?(?:sorry(?! you|,? that you| to hear| for)|afraid|unable|not able|not (?:\w+ )?sure"
        r"|missing|torn)|i(?:['’]d| would) "
        r"(?:rather|prefer) not|i (?:\w+ )?(?:can(?:no|['’])t|could(?:n['’]| no)t|won['’]t|have no|prefer not"
        r"|do(?:n['’]| no)t (?:know|have|see|find|retain|remember))",
        r"sorry\b(?! for the (?:\w+ )?(?:slip|mistake|error|mix-up))|i apologi[sz]e"
        r"|(?:my )?apologies\b(?!\W*:)|unfortunately\b|as an ai\b|no idea\b|unable to",
        r"leider\b|(?:es )?tut mir leid|ich schwanke|ich bin (?:mir )?(?:\w+ )?(?:unsicher|nicht sicher)"
        r"|(?:(?:\w+ )?(?:kann|weiß|darf|habe|sehe) ich"
        r"|ich (?:kann|weiß|darf|habe|sehe)|[^.!?\n]{0,40}\blieg(?:t|en) mir)\b[^.!?\n]{0,40}\b(?:nicht|kein)",
        r"je (?:préfère ne pas|(?:ne |n['’])(?:peux|sais|vois|trouve|dispose|suis|ai|arrive))|j['’]hésite"
        r"|désolée?\b|malheureusement",
        r"(?:no (?:puedo|sé|sabría|tengo|veo|encuentro|dispongo|estoy segur[oa])|prefiero no|dudo entre)\b"
        r"|lo siento|lamentablemente",
        r"(?:non (?:posso|so|ho|vedo|trovo|dispongo|sono (?:in grado|sicur[oa]))|preferisco non)\b"
        r"|mi dispiace|purtroppo",
        r"(?:não (?:posso|sei|tenho|vejo|encontro|identifico|consigo|saberia)|prefiro não|lamento)\b|desculpe"
        r"|infelizmente|fico (?:mesmo )?dividid",
        r"ik (?:kan|weet|heb|zie)\b[^.!?\n]{0,40}\b(?:niet|geen)|helaas\b",
        r"nie (?:mogę|wiem|mam|widzę|jestem w stanie)|niestety\b|(?:я )?не (?:могу|знаю|вижу|имею)|к сожалению",
        r"(?:很|非常)?抱歉|对不起|我?(?:目前)?(?:无法|不知道|没有看到)|申し訳|残念ながら",
    )
)
"""How a writer says to the user that there is no answer from here."""
_UNKNOWN: Final = "|".join(
    (
        r"(?:nobody|no one) (?:\w+ )?(?:can|could|knows)|(?:(?:it|that)(?:['’]s| is) )?(?:not possible|impossible|hard"
        r"|difficult) (?:for me )?to|cannot be|(?:the|this|your) question is ambiguous",
        r"there(?:['’]s| is) (?:no (?:\w+ )?(?:way|record)|not enough|insufficient)"
        r"|(?:it|that) (?:\w+ )?(?:depends? on|comes down to)",
        r"(?:das kann )?(?:derzeit )?niemand (?:kann|weiß|seriös)|(?:das )?(?:hängt (?:ganz )?davon"
        r"|kommt (?:ganz )?darauf)"
        r"|(?:das ist )?schwer zu sagen",
        r"personne ne (?:peut|sait)|(?:il (?:est|m['’]est) )?impossible de|(?:ça|cela|tout) dépend"
        r"|(?:c['’]est )?difficile",
        r"nessuno (?:può|sa)\b|dipende d|nadie (?:puede|sabe)|(?:no )?es (?:im)?posible|(?:eso )?depende de",
        r"(?:es )?difícil (?:de )?(?:saber|decir|dizer)|ninguém (?:pode|sabe)|(?:é )?impossível",
        r"trudno powiedzieć|(?:to )?zależy od|(?:это )?зависит от|трудно сказать",
        r"没有人(?:能|知道)|这取决于|难以?(?:说|下定论)",
    )
)
"""How a writer says that nobody has an answer."""
_START: Final = (
    r"(?:^|[.!?…:,;–—]\s+|\n|[。！，,]"
    r"|\b(?:but|so|and|since|as|that|però|pero|mais|mas|aber|ya que|da|así que|por eso|quindi|donc|então"
    r"|deshalb)\s)[\W_]*"
)
_CANNOT: Final = lazy_pattern(rf"{_START}(?:{_I_CANNOT})", re.IGNORECASE)
_DECLINES: Final = lazy_pattern(
    rf"{_START}(?:{_I_CANNOT}|{_UNKNOWN})|the answer (?:is|remains)\s+(?:not|un|still|yet|open)"
    r"|ご質問ですね|难下定论|无法(?:求|确定|得出|计算|判断|获取|预测|回答|知道)|できません",
    re.IGNORECASE,
)
_STILL: Final = lazy_pattern(r"\b(?:that said|but|still|nevertheless|even so),? here\b", re.IGNORECASE)
"""How an estimate follows the doubt about it."""
_REFUSES: Final = lazy_pattern(
    r"\A\W*(?:(?:i(?:['’]m| am) (?:very )?sorry|sorry|unfortunately)[,.]?\s+(?:but )?)?"
    r"(?:something went wrong while|i(?:(?:['’]m| am) (?:unable|not able) to| can(?:no|['’])t| won['’]t) "
    r"(?:help|assist|provide|fulfil|complete|write|create|produce|do that)"
    r"|preferisco non|prefiero no|prefiro não|je préfère ne pas)\b",
    re.IGNORECASE,
)
"""How a model declines to write a text; a letter that declines something says first to whom."""
_REQUESTS: Final = lazy_pattern(
    "|".join(
        (
            r"(?<!how )\b(?:(?:could|can|would|will) you (?:\w+ )?|please (?:also )?)(?:tell|provide|clarify|share"
            r"|specify|confirm|give|send|paste|upload|attach|re-?send|let me know (?!if))\b",
            r"\bi(?:['’]\w+| would| will)?(?: also| just| still)? need (?:to know|you to"
            r"|(?:\w+ ){0,3}(?:more|additional"
            r"|further|missing)\b)|\b(?:once|as soon as) you(?:['’]ve| have| can)? (?:share|provide|send"
            r"|tell|paste|upload)",
            r"\bplease go ahead and\b|\btry (?:attaching|uploading|sending)\b|n['’]t (?:appear"
            r"|seem) to (?:be|have been)\b",
            r"\b(?:do|did) you (?:mean|have in mind)\b|\bare you (?:referring|talking|asking)\b"
            r"|\byou (?:didn['’]t|forgot to|haven['’]t) (?:include|attach|share|provide|say|tell)\b",
            r"\b(?:könnt(?:est|en|et)|kannst|können) (?:du|sie|ihr)\b[^.!?\n]{0,80}\?|\b(?:meinen sie|meinst du)\b"
            r"|\bbitte (?:noch |kurz |hier )?(?:nenn|geb|gib|schick|send|lad|teil|sag|füg|kopier|ergänz|präzisier)"
            r"|\bbrauche ich (?:noch|dafür|von dir|von ihnen)\b|\bwäre es hilfreich\b|\bschick(?:e|t|en sie)? mir\b",
            r"\b(?:pou(?:vez|rriez)-vous|peux-tu|pourrais-tu|merci de|veuillez|dites-moi|dis-moi|s['’]agit-il"
            r"|il me faut|vous (?:parlez|pensez à))\b|\bj['’]ai besoin d",
            r"\b(?:podrías?|podría usted|puedes?|potresti|potrebbe|puoi|poderia|pode)\b[^.!?\n]{0,80}\?",
            r"\bnecesit(?:o|aría) (?:saber|que|tus?|los|el|la|más)\b|\bno se (?:ha )?adjunt|¿me (?:das|puedes)\b"
            r"|\b(?:por|per) favore?[, ]+\w+m[ei]\b|\bdime también\b|¿[^?\n]{0,40}\b(?:te|se) refiere",
            r"\b(?:mandami|mandamel[aeio]|inviami|intendi|ho bisogno di|mi serv(?:e|ono)|precis(?:o"
            r"|aria) (?:de|saber|que)"
            r"|envie)\b",
            r"\b(?:kun|kunt|zou) (?:je|u)\b[^.!?\n]{0,80}\?|\blaat (?:me|mij) [^.!?\n]{0,20}\bweten\b|\bgaat het\?"
            r"|\bbedoel (?:je|u)\b",
            r"\bczy (?:możesz|mógłbyś|mogłabyś|może pan)|\b(?:prześlij|proszę o|уточните|пришлите|сообщите|укажите)\b",
            r"请(?:您)?(?:提供|上传|发|把|重新)|(?:^|[。！？\n])\s*请您?(?:告诉|说明|补充)|能(?:否|不能)[^。\n]{0,40}[?？]"
            r"|(?:粘贴|发送?|贴)到(?:这里|对话)|指的是哪",
            r"いただけますか|(?<!気軽に)(?:教えて|お知らせ)(?:ください|いただ|もら)|送って|貼り付け|(?:お送り|ご提供|ご記入)ください",
        )
    ),
    re.IGNORECASE,
)
"""How the user is asked for what the task lacks."""
_MISSES: Final = lazy_pattern(
    r"\bi (?:do(?:n['’]| no)t|can(?:no|['’])t) (?:see|find|have|retain)\b|\b(?:missing|came? through|reached me)\b"
    r"|\b(?:n['’]t|not|no \w+(?: was| is)?) (?:attached|included|provided)\b|\b(?:sehe|finde) ich\b[^.!?\n]{0,40}\bkein"
    r"|\b(?:ne (?:vois|trouve)|no (?:veo|encuentro|encontré)|non (?:vedo|trovo)|não (?:vejo|encontrei|recebi))\b"
    r"|\bno se (?:ha )?adjunt|\bn['’]est pas joint|\bnicht angehängt|没有(?:看到|找到|收到)|見当たり|届いていま?せ?",
    re.IGNORECASE,
)
_PROMISES: Final = lazy_pattern(
    r"\b(?:i(?:['’]ll| will| can|['’]m ready)|let me|me to|happy to help|ich|je|puedo|hago|preparo|traduzco|escribo"
    r"|posso|farò|farei|faccio|traduco|scrivo|faço|traduzo|escrevo|dan (?:maak|vertaal|schrijf))\b"
    r"|我(?:们先|就|会|可以|马上|来|将)|いたします|作成します|お手伝い",
    re.IGNORECASE,
)
_AGREES: Final = lazy_pattern(
    r"\W*(?:sure|got it|certainly|of course|absolutely|gladly|great|happy to|i(?:['’]d| would) (?:be\b|love to)"
    r"|(?:what an? )?(?:\w+ )?(?:lovely|great|nice|wonderful|fun|fantastic)"
    r"|gern(?:e)?|natürlich|klar|bien sûr|avec plaisir|claro|por supuesto|volentieri|certo|com (?:certeza|prazer)"
    r"|chętnie|graag|当然|好的|もちろん|かしこまりました)(?!\w)",
    re.IGNORECASE,
)
_STARTS_LATER: Final = lazy_pattern(
    r"\b(?:(?:ein(?:en)? )?(?:moment|augenblick)(?:,| bitte)|une? (?:petit )?(?:instant|moment)|melde mich"
    r"|(?:só )?u[nm] (?:moment(?:o|inho)|instante|minuti\w+|attimo)|(?:chwil|chwilecz)k?ę|минутку|секунду|one moment"
    r"|give me (?:just )?(?:a |one )?(?:moment|minute|second)|i(?:['’]ll| will) (?:get (?:started"
    r"|back to you)|have (?:that|it|the)\b"
    r"[^.!?\n]{0,40}ready))\b[^\n]*\Z|(?:少々|もう少し)お待ち|请?稍(?:等|候)"
    r"|\b(?:(?:shall|should|may|can) i|me to) (?:now )?(?:go ahead|proceed|start|begin)\b[^.!?\n]*\?",
    re.IGNORECASE,
)
_WILL: Final = r"\bi(?:['’]ll| will|['’]d| would| plan to| am going to|['’]m going to)\b"
_PLANS: Final = lazy_pattern(
    rf"\A[^\n]*{_WILL} (?:proceed|start|begin|structure|organi[sz]e|first|write|follow|approach)\b[^\n]*:\s*\n"
    rf"[\s\S]*^[^\n]*{_WILL}[^\n]*\Z",
    re.IGNORECASE | re.MULTILINE,
)
"""Points of what will be written, and not the text."""
_POLITE: Final = lazy_pattern(
    rf"\W*(?:{OFFER}|(?:h(?:ello|i|allo)|hola|ciao|olá|bonjour)\W*\Z"
    r"|[^.!?\n]{0,80}\b(?:(?:here|hier|da|là|aquí|qui|aqui)\b[^.!?\n]{0,80}\b(?:to|um|pour|para|per)|can i"
    r"|kann ich|puis-je|puedo"
    r"|posso)\b[^.!?\n]{0,80}\b(?:help|helf|aide|ayud|aiut|ajud)\w*|thanks?\b|you(?:['’]re| are) (?:very "
    r"|most )?welcome|it (?:was|is) a pleasure"
    r"|i(?:['’]m| am) (?:always )?(?:glad|happy)|have a (?:great|wonderful|nice|lovely)"
    r"|(?:great|good|excellent|interesting) question"
    r"|vielen dank|gern geschehen|merci|avec plaisir|gracias|grazie|obrigad)",
    re.IGNORECASE,
)
_LETTER: Final = lazy_pattern(
    r"^\W*(?:dear|hi|hello|hey|subject|betreff|objet|asunto|oggetto|sehr geehrte|liebe|bonjour|chère?|madame|estimad"
    r"|querid|gentile|car[oa]|szanown|drog[ia]|geachte|beste|(?:kind |best |warm )?(?:regards|wishes)|sincerely|yours)",
    re.IGNORECASE | re.MULTILINE,
)
_QUESTIONS_ASKED: Final = lazy_pattern(
    r"\b(?:questions?|quiz|riddles?|faq|interview|survey|fragen?|fragebogen|preguntas|domande|perguntas)\b|问题|質問",
    re.IGNORECASE,
)
_SPEAKS_TO: Final = lazy_pattern(
    r"\b(?:mess?ag\w+|repl(?:y|ies)|respon[ds]\w*|e-?mails?|letters?|text|sms|tweets?|posts?|announcements?|notices?"
    r"|signs?|scripts?|formal\w*|professional\w*|friendl\w+|chat\w*|customers?|polite\w*|rewrite"
    r"|rephrase|speech|instructions|support|invitation|poems?"
    r"|say|dit-on|sagt man|se dice|si dice|se diz|reklamacj\w*|haiku|haïku|songs?|lyrics|gedicht|poem[ae]"
    r"|poème|poesia|dialog\w*|diálogo|absage|wiadomość|list|bericht"
    r"|translat\w*|mail|nachricht|carta|mensa\w+|lettre|tradu\w*|übersetz\w*)\b|[邮信訳译诗詩]|対話|メール|返信|紹介",
    re.IGNORECASE,
)
"""Texts that may speak to somebody, as a reply speaks to the user."""
_SOURCE: Final = lazy_pattern(r"[\"'«“‘„「『]\w[^\n]{20,}|[:：]\s+\w[^\n]{20,}")
"""A text that a problem gives."""
_QUOTED: Final = lazy_pattern(
    r"\[[^\]\n]{1,60}\]|(?<!\*)\*[^*\n]{2,80}\*(?!\*)|\"[^\"\n]{2,80}\"|[„“«「][^”“»」\n]{2,80}[”“»」]"
)
"""Words that are not the writer's: an example, and what is left for the user to fill in, `[please add]`."""
_MAX_SHORT: Final = 600
"""Characters of a reply of which each sentence may decline or ask."""
_MAX_QUESTION: Final = 250
"""Characters of a paragraph that its last question makes a question."""
_MAX: Final = 1_500
"""Characters of a reply whose first or last paragraph may."""


def declines(text: str) -> bool:
    """Whether a text says that it gives no answer."""
    return _DECLINES.search(text) is not None


def withholds(text: str, subject: Subject, *, is_text: bool) -> bool:
    """Whether a reply gives no answer.

    Args:
        text: The reply.
        subject: What it replies to.
        is_text: Whether a text is asked for, which may decline or ask for something itself.
    """
    text = _QUOTED.sub("", text)
    parts = paragraphs(text) or [""]
    first, last = parts[0], parts[-1]
    may_ask = is_text and _SPEAKS_TO.search(subject.problem)
    if all(map(_POLITE.match, re.split(r"(?<=[.!?])\s+", text))):
        return True
    if _STARTS_LATER.search(last):
        return True
    if _AGREES.match(first) and len(text) <= _MAX_SHORT and all(map(_PROMISES.search, parts)):
        return True
    ends = text if len(text) <= _MAX_SHORT else first if OFFERS.match(last) else f"{first}\n{last}"
    asks = _asks_most(text, subject) or _REQUESTS.search(ends) is not None
    if not is_text:
        return asks or (_DECLINES.search(ends) is not None and not _STILL.search(first))
    if _REFUSES.search(text) or _PLANS.search(text):
        return "```" not in text
    if len(text) > _MAX or _LETTER.search(text):
        return False
    if not may_ask:
        return bool(asks or _CANNOT.search(re.split(r"(?<=[.!?。])\s", first, maxsplit=1)[0]))
    if _SOURCE.search(subject.problem):
        # Words to be said in another way, which may be a question, too.
        return asks and _MISSES.search(first) is not None
    misses = _MISSES.search(first)
    signs = (asks, misses, _PROMISES.search(last), _AGREES.match(first))
    return bool(asks or misses) and sum(map(bool, signs)) > 1


def _asks_most(text: str, subject: Subject) -> bool:
    """Whether most lines of a reply are questions, which were not asked for."""
    lines = [line for line in text.splitlines() if line.strip()]
    # A paragraph of several sentences may end with a question.
    lines = lines if len(lines) > 1 or len(text) <= _MAX_QUESTION else re.split(r"(?<=[.!?]) ", text)
    questions = sum(line.rstrip().endswith(("?", "？")) for line in lines)
    return 2 * questions > len(lines) and not _QUESTIONS_ASKED.search(subject.problem)
