/** What a caller writes; compiled, never run. Lines marked as errors must be errors. */
import {
  Client,
  DEFAULT_BUDGET,
  NotDelivered,
  ReportRejected,
  SfumatoError,
  Survey,
  type Answered,
  type Store,
} from "@sfumato/client";
import { Survey as SurveyOfCore } from "@sfumato/client/core";

const survey: Survey = await Survey.load("https://surveys.example.org", { fingerprint: "ab".repeat(32) });
const store: Store = new Map<string, string>();
const client = new Client(survey, {
  url: "https://surveys.example.org",
  store,
  budget: 2 * Number(DEFAULT_BUDGET),
  allowClear: true,
});
new Client(survey, { url: "https://surveys.example.org", budget: null, store: { ...store, persist: async () => true } });
const spent: number = await client.spent();
const shown: string = survey.leavesOpen ? survey.disclosure : survey.checked;
const open: number = survey.unprotected().count + survey.unprotected(5).labels.length;
console.log(spent, shown, open, await SurveyOfCore.of("{}"));

const answered: Answered = await client.answer("clinic");
const waits: number = answered.delivered ? 0 : answered.waiting;
await client.answer([48.2, 16.4]);
await client.answer({ latitude: 48.2, longitude: 16.4 });
const sent: boolean = (await client.prepare(7)).beacon();
const report: number = survey.privatize("clinic") + survey.reportFrom(0, [0n, 1n]);
const chances: number[] = survey.probabilities(0);
if (survey.repeat !== "once") console.log(survey.repeat.every, survey.repeat.distinct, waits, sent, report, chances);

try {
  await client.flush();
} catch (problem) {
  if (problem instanceof ReportRejected) console.log(problem.index);
  if (problem instanceof NotDelivered || problem instanceof SfumatoError) console.log(problem.message);
}

// @ts-expect-error a pin is needed
await Survey.load("https://surveys.example.org", {});
// @ts-expect-error a pin is not null
await Survey.of("{}", { fingerprint: null });
// @ts-expect-error an option is not misspelt
await Survey.of("{}", { fingerPrint: "ab" });
// @ts-expect-error a survey is loaded, not made
new Survey();
// @ts-expect-error a value is no function
await client.answer(() => "clinic");
// @ts-expect-error a survey does not change
survey.title = "another";
// @ts-expect-error there is no such verdict
if (survey.checked === "none") console.log("unchecked");
// @ts-expect-error a budget is a number or its text
new Client(survey, { url: "https://surveys.example.org", budget: true });
// @ts-expect-error consent is true or false
new Client(survey, { url: "https://surveys.example.org", allowClear: "yes" });
// @ts-expect-error an aggregator is needed
new Client(survey, {});
