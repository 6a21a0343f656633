"""What else models call the fields of forms."""

from __future__ import annotations

from typing import Final

_TABLE: Final = """
answer: finalanswer final theanswer correctedanswer correctanswer newanswer result solution response output
  conclusion value antwort ergebnis réponse respuesta risposta resposta 答案 回答 答え
finalanswer: answer final conclusion
value: answer finalanswer result choice
result: answer output finalanswer response value
subquestionanswer: answer subanswer intermediateanswer response result finalanswer
reason: reasoning rationale explanation justification why because comment feedback check checks analysis
  details objection
reasoning: steps thought thoughts reason rationale explanation work analysis thinking
thought: reasoning thinking thoughts analysis reason content nextthought revisedthought currentthinking
  rationale step newthought revision
currentthinking: thinking thought currentthought reasoning
evaluation: evaluationofpreviousthought previousevaluation previousthoughtevaluation review
planning: plan steps updatedplan plansteps
nextthoughtneeded: needsmorethoughts continue morethoughtsneeded nextneeded
substeps: steps children substeps
description: step title task name text content
status: state
correct: iscorrect right valid isvalid holds sound ok verdict answeriscorrect
sound: issound correct valid holds iscorrect ok
holds: correct valid sound verified confirmed iscorrect ok
thoughts: candidates nextsteps steps proposals options ideas alternatives nextthoughts items
steps: reasoning reasoningsteps solutionsteps plan thoughts nextsteps subproblems work solution workings
  derivation reasoningprocess schritte étapes pasos passi passos 步骤 手順
done: isdone finished complete completed isfinished final
finished: done isfinished complete completed isdone
subquestion: followup followupquestion question nextquestion nextsubquestion nextfollowup subq subquestions
  followups followupquestions questions nextquestions
stepbackquestion: question generalquestion stepback abstractquestion broaderquestion
generalprinciple: principle principles generalprinciples answer
approach: plan strategy method choice
application: setup appliedproblem applied
hypothesis: proposedsolution proposal solution statement answer
tool: name toolname action function functionname
arguments: args input actioninput parameters toolinput params toolarguments kwargs
actions: action calls toolcalls toolcall tools
input: arguments args query toolinput parameters actioninput
plan: reason description why purpose thought
calls: plan steps plans toolcalls actions
id: evidence label name var variable
score: value rating overallscore
overallscore: score rating overall totalscore total value
scores: evaluations ratings candidates results
statevariables: variables state vars values
calculation: operation computation step line
lines: steps calculations operations
rule: updaterule procedure
quality: verdict rating status decision
next: nextstage stage nextstep decision then
totalthoughts: estimatedthoughts thoughtsneeded estimatedtotalthoughts numberofthoughts total
tasks: plan steps tasklist
taskquery: query task question input
resourcename: resource tool name
toolinput: input arguments query args parameters
continueiterations: continue iterate continueiteration anotheriteration
keyfindings: findings keypoints
complexitylevel: complexity level
keychallenges: challenges
sequentialdependencies: dependencies
formalclaim: claim formal
code: python program script
confidence: certainty
"""

SYNONYMS: Final[dict[str, tuple[str, ...]]] = {
    name: tuple(words.split())
    for name, _, words in (row.partition(":") for row in _TABLE.replace("\n  ", " ").strip().splitlines())
}
"""By field, what else models call it, each as `fit.plain_name` writes it."""
