/** Begins a coached run with a client that was generated of the schema, answers it, and prints what it came to. */

import createClient from "openapi-fetch";
import type { components, paths } from "./schema.js";

type Run = components["schemas"]["Run"];

const client = createClient<paths>({ baseUrl: process.argv[2] });
const begun = await client.POST("/api/runs", {
  body: { problem: "What is 17 + 25?", strategy: "chain_of_thought", mode: "coached" },
});
const run: Run = begun.data!;
const question: components["schemas"]["Question"] = run.questions[0];
const answered = await client.POST("/api/runs/{run_id}/answers", {
  params: { path: { run_id: run.run_id } },
  body: { answers: { [question.id]: "42" } },
});
const listed = await client.GET("/api/runs", { params: { query: { limit: 1 } } });
const head: components["schemas"]["RunHead"] = listed.data!.runs[0];
const refused = await client.GET("/api/runs/{run_id}", { params: { path: { run_id: "none" } } });
console.log(answered.data!.answer, head.outcome, head.usage.calls, refused.error!.error.code);
