export const meta = {
  name: 'answer-coached-questions',
  description: 'Run a reasoning strategy of Reasonry, or refute a plan, with each question answered by a fresh agent.',
  whenToUse: 'For other eyes and independent answers. args: the arguments of the tool coach, such as {"action": "refute", "problem": "the plan, whole"} or {"action": "start", "strategy": "tree_of_thoughts", "problem": "…"}; a text alone is a plan to refute.',
  phases: [{ title: 'Ask' }, { title: 'Answer' }],
}

const STATE = {
  type: 'object',
  properties: {
    run_id: { type: 'string' },
    status: { type: 'string' },
    shared: { type: 'object', description: 'The reply\'s `shared`: texts and schemas by id, word for word; {} if it has none.' },
    questions: {
      type: 'array',
      items: {
        type: 'object',
        properties: {
          id: { type: 'string' },
          prompt: { type: 'string' },
          count: { type: 'integer' },
          answer_schema: { description: 'As it stands in the reply: a schema, or `[#id]`.' },
        },
        required: ['id', 'prompt'],
      },
    },
    result: { type: 'object' },
    refused: {
      type: 'array',
      items: { type: 'object', properties: { id: { type: 'string' }, reason: { type: 'string' } } },
      description: 'The error\'s `refused`, where there is an error.',
    },
  },
  required: ['run_id', 'status', 'shared', 'questions'],
}

const coach = (call) => agent(
  'Call the tool `coach` of the MCP server reasonry once, with exactly these arguments, and return its reply word for ' +
  `word. Answer no question yourself, and call nothing else.\n\n${JSON.stringify(call)}`,
  { label: `coach ${call.action}`, phase: 'Ask', schema: STATE },
)

const known = {}
const whole = (text) => text.replace(/\[#(\w+)\]/g, (mark, id) => (id in known ? whole(known[id]) : mark))

const form = (schema) => (typeof schema === 'string' ? known[schema.slice(2, -1)] : schema)

// One fresh agent for each sample: it is told the question and nothing else.
const answer = (question, number) => agent(
  `${whole(question.prompt)}${number ? '' : refusals[question.id] ?? ''}`,
  {
    label: `${question.id}${question.count > 1 ? ` (${number + 1})` : ''}`,
    phase: 'Answer',
    schema: {
      type: 'object',
      properties: { answer: form(question.answer_schema) ?? { type: 'string' } },
      required: ['answer'],
    },
  },
)

let refusals = {}
let state = await coach(typeof args === 'string' ? { action: 'refute', problem: args } : args)
while (state && state.status === 'active' && state.questions.length) {
  Object.assign(known, state.shared)
  const asked = state.questions.flatMap((question) =>
    Array.from({ length: question.count ?? 1 }, (_, number) => ({ question, number })))
  const found = await parallel(asked.map(({ question, number }) => () => answer(question, number)))
  const answers = {}
  asked.forEach(({ question }, place) => {
    if (!found[place]) return
    if ((question.count ?? 1) > 1) (answers[question.id] ??= []).push(found[place].answer)
    else answers[question.id] = found[place].answer
  })
  if (!Object.keys(answers).length) return { run_id: state.run_id, status: 'stopped: no agent answered; resume the run' }
  state = await coach({ action: 'answer', run_id: state.run_id, answers })
  refusals = Object.fromEntries((state?.refused ?? []).map(
    ({ id, reason }) => [id, `\n\nAn earlier answer was refused: ${reason}`]))
}
return state && { run_id: state.run_id, status: state.status, result: state.result }
