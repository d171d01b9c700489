/** The budget: one account for a device, which no other name, order or number of labels refills. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { answerer } from "../conformance.js";
import { BudgetExceeded, Client, DEFAULT_BUDGET, InvalidSymbols, Survey } from "../src/index.js";
import { contextOf } from "../src/context.js";
import { entryOf, totalCost, withCosts } from "../src/ledger.js";
import { atMost, reduceFraction } from "../src/odds.js";
import { Aggregator, seams } from "./support/aggregator.js";
import { packed, resolved } from "./support/large.js";
import { generator } from "./support/generator.js";
import { BOOK, bookOf, rewriteBook } from "./support/storage.js";
import { casesOf, surveyOf, surveyText } from "./support/vectors.js";

const LABELS = ["healthy", "flu", "cancer", "depression"];

/** A table whose rows are all alike: it keeps any promise. */
function silent(size) {
  const row = [String(2n ** 63n), String(2n ** 63n)];
  return { kind: "table", rows: Array(size).fill(row), word_bits: 64 };
}

/** A survey under a name, over labels, with any context. */
async function surveyFor(name, labels, context = { kind: "uniform", epsilon: "1" }, repeat = "once") {
  const domain = { kind: "labels", labels, other: null };
  const data = JSON.parse(resolved({ ...context, domain }, silent(labels.length)));
  Object.assign(data.promise, { name, repeat });
  return Survey.of(JSON.stringify(data));
}

/** Answer, and say whether it was sent, or which error there was instead. */
async function answered(survey, store, options = {}) {
  const aggregator = new Aggregator(survey);
  try {
    const { delivered } = await new Client(survey, seams(aggregator, { store, ...options })).answer(survey.label(0));
    return delivered && "sent";
  } catch (problem) {
    assert.equal(aggregator.requests.length, 0);
    return problem.name;
  }
}

const WAYS = {
  "forty names": () => LABELS,
  "labels in another order": (i) => LABELS.map((_, x) => LABELS[(x + i) % 4]),
  "one label more each": (i) => [...LABELS, ...Array.from({ length: i }, (_, j) => `other ${j}`)],
};

for (const [way, labelsOf] of Object.entries(WAYS)) {
  test(`forty surveys about one thing, ${way}: four are answered`, async () => {
    const store = new Map();
    const outcomes = [];
    for (let i = 0; i < 40; i++) outcomes.push(await answered(await surveyFor(`mood ${i}`, labelsOf(i)), store));
    assert.deepEqual(outcomes, [...Array(4).fill("sent"), ...Array(36).fill("BudgetExceeded")]);
    assert.equal(bookOf(store).entries.length, 4);
  });
}

test("options of an earlier version and misspelt ones are refused", async () => {
  const survey = await surveyFor("mood", LABELS);
  const client = (more) => new Client(survey, seams(new Aggregator(survey), { store: new Map(), ...more }));
  for (const more of [{ cap: { kind: "uniform", epsilon: "1" } }, { subject: "health" }, { allowclear: true }])
    assert.throws(() => client(more), InvalidSymbols);
  client({});
});

test("without a budget, which must be said, all are answered", async () => {
  const store = new Map();
  for (let i = 0; i < 40; i++)
    assert.equal(await answered(await surveyFor(`mood ${i}`, LABELS), store, { budget: null }), "sent");
  assert.equal(bookOf(store).entries.length, 40);
});

test("a larger budget answers more, and it is the total that counts", async () => {
  const store = new Map();
  for (const [i, outcome] of ["sent", "sent", "BudgetExceeded"].entries())
    assert.equal(await answered(await surveyFor(`mood ${i}`, LABELS), store, { budget: 2 }), outcome);
  assert.equal(await answered(await surveyFor("mood 9", LABELS), store, { budget: "3" }), "sent");
  assert.equal(await answered(await surveyFor("mood 10", LABELS), store, { budget: 3 }), "BudgetExceeded");
});

test("a large ε needs a larger budget, an open pair consent", async () => {
  const forty = await surveyFor("forty", LABELS, { kind: "uniform", epsilon: "40" });
  assert.equal(await answered(forty, new Map()), "BudgetExceeded");
  assert.equal(await answered(forty, new Map(), { budget: 40 }), "sent");
  const open = await surveyFor("open", LABELS, { kind: "uniform", epsilon: "inf" });
  assert.equal(await answered(open, new Map()), "BudgetExceeded");
  assert.equal(await answered(open, new Map(), { budget: null }), "BudgetExceeded");
  assert.equal(await answered(open, new Map(), { allowClear: false }), "BudgetExceeded");
  assert.equal(await answered(open, new Map(), { allowClear: true }), "sent");
});

test("consent is asked for by an answer, and its error says what to do", async () => {
  const highLow = await surveyOf("samples.json", "high-low, hadamard");
  const aggregator = new Aggregator(highLow);
  const client = (options) => new Client(highLow, seams(aggregator, { store: new Map(), ...options }));
  const refusing = client({});
  await assert.rejects(
    refusing.answer(highLow.label(0)),
    (problem) => problem instanceof BudgetExceeded && /unprotected.*allowClear: true/s.test(problem.message),
  );
  await assert.rejects(refusing.prepare(highLow.label(0)), BudgetExceeded);
  assert.equal(aggregator.requests.length, 0);
  // What needs no consent goes on.
  assert.equal(await refusing.spent(), 0);
  await refusing.flush();
  await refusing.forget();
  assert.ok((await client({ allowClear: true }).answer(highLow.label(0))).delivered);
  for (const allowClear of [1, "yes", null, {}]) assert.throws(() => client({ allowClear }), InvalidSymbols);
});

test("budgets that are no budgets are refused early", async () => {
  const survey = await surveyFor("mood", LABELS);
  const client = (budget) => new Client(survey, { url: "https://a.example", store: new Map(), budget });
  for (const budget of [0, "0", -1, "-1", NaN, Infinity, "inf", "", "four", "4.0", true, {}, ["4"], 4n])
    assert.throws(() => client(budget), InvalidSymbols, String(budget));
  for (const budget of [4, 0.5, "4", "1/3", "0.25", null, undefined]) assert.ok(client(budget));
  assert.equal(DEFAULT_BUDGET, "4");
});

test("undefined is the default, and never no budget", async () => {
  const store = new Map();
  for (const [i, outcome] of ["sent", "sent", "sent", "sent", "BudgetExceeded"].entries())
    assert.equal(await answered(await surveyFor(`mood ${i}`, LABELS), store, { budget: undefined }), outcome);
});

test("the error says what is spent, what it would be, and what to do; nothing is charged", async () => {
  const store = new Map();
  await answered(await surveyFor("first", LABELS, { kind: "uniform", epsilon: "2.5" }), store);
  const before = store.get(BOOK);
  const second = await surveyFor("second", LABELS, { kind: "uniform", epsilon: "1.75" });
  const client = new Client(second, seams(new Aggregator(second), { store }));
  await assert.rejects(client.answer("flu"), (problem) => {
    assert.match(problem.message, /spent 2\.5 of its budget of 4, .* bring it to 4\.25.*larger budget/s);
    assert.ok(!problem.message.includes("flu"));
    return problem instanceof BudgetExceeded;
  });
  assert.equal(store.get(BOOK), before);
  assert.equal(await client.spent(), 2.5);
});

test("what was charged is answered, even where the budget is smaller by now", async () => {
  const store = new Map();
  const survey = await surveyFor("mood", LABELS, { kind: "uniform", epsilon: "3" });
  assert.equal(await answered(survey, store), "sent");
  assert.equal(await answered(survey, store, { budget: 1 }), "sent");
});

test("spent is the total, rounded up; forgetting gives nothing back", async () => {
  const store = new Map();
  const third = await surveyFor("third", LABELS, { kind: "uniform", epsilon: "1/3" });
  const client = new Client(third, seams(new Aggregator(third), { store }));
  assert.equal(await client.spent(), 0);
  await client.answer("flu");
  assert.equal(await client.spent(), 0.333334);
  await client.forget();
  assert.equal(await client.spent(), 0.333334);
  await client.answer("flu");
  assert.equal(await client.spent(), 0.666667);
});

// --- how costs add up ---------------------------------------------------------------------------------

const highLow = (...sensitive) => ({ kind: "high-low", epsilon: "1", sensitive: packed(sensitive) });

/** What a ledger with these surveys has spent. */
async function spentBy(...surveys) {
  const { p, q } = totalCost(surveys.map((survey) => entryOf(survey, "00")));
  return Number(p) / Number(q);
}

test("surveys add up, also where they protect different answers of one domain", async () => {
  const on = (context, name = "one") => surveyFor(name, LABELS, context);
  assert.equal(await spentBy(await on(highLow(0, 1)), await on(highLow(2))), 2);
  assert.equal(await spentBy(await on(highLow(0)), await on({ kind: "uniform", epsilon: "0.5" })), 1.5);
  const tiers = { kind: "tiers", epsilons: ["1", "3"], tier_of: packed([0, 1, 1, 1]) };
  assert.equal(await spentBy(await on(tiers), await on(highLow(0))), 4);
});

test("an open pair costs nothing, other domains add up in full, repeats cost each time", async () => {
  const open = await surveyFor("open", LABELS, { kind: "uniform", epsilon: "inf" });
  assert.equal(await spentBy(open), 0);
  const blocks = await surveyFor("blocks", LABELS, { kind: "blocks", epsilon: "2", block_of: packed([0, 0, 1, 1]) });
  assert.equal(await spentBy(blocks, open), 2);
  const other = await surveyFor("other", LABELS.slice(1));
  assert.equal(await spentBy(blocks, other), 3);
  const weekly = await surveyFor("weekly", LABELS, { kind: "uniform", epsilon: "0.5" }, { distinct: 3, every: "week" });
  assert.equal(await spentBy(weekly, blocks), 3.5);
});

test("a survey costs its largest finite entry, as brute force finds it, in both formats", async () => {
  const draw = generator(5);
  const epsilons = ["1/3", "0.1", "2/7", "1.25", "1/1000000007", "0.0000000000000000001", "inf"];
  const pick = () => epsilons[draw(epsilons.length)];
  for (let i = 0; i < 200; i++) {
    const size = 2 + draw(5);
    const domain = { kind: "range", size, start: 0 };
    const square = () =>
      Array.from({ length: size }, (_, x) => Array.from({ length: size }, (_, x2) => (x === x2 ? "0" : pick())));
    const block_of = packed(Array.from({ length: size }, (_, x) => Math.floor(x / 2)));
    const record = [
      { kind: "uniform", domain, epsilon: pick() },
      { kind: "matrix", domain, matrix: square() },
      { kind: "blocks", domain, epsilon: pick(), block_of },
    ][draw(3)];
    const context = contextOf(record);
    const distinct = 1 + draw(3);
    const expected = bruteForce(context, size, BigInt(distinct));
    const survey = { fingerprint: "aa", repeat: { distinct }, context };
    assert.deepEqual(totalCost([entryOf(survey, "00")]), expected, JSON.stringify(record));
    const old = { account: "domain", survey: "aa", secret: "00", times: distinct, context: record };
    assert.deepEqual(totalCost(withCosts([old])), expected, JSON.stringify(record));
  }
});

/** The largest finite entry of any pair. */
function bruteForce({ epsilon }, size, times) {
  let most = { p: 0n, q: 1n };
  for (let x = 0; x < size; x++) {
    for (let x2 = 0; x2 < size; x2++) {
      const owed = x === x2 ? Infinity : epsilon(x, x2);
      if (owed !== Infinity && !atMost(owed, most)) most = owed;
    }
  }
  return reduceFraction(times * most.p, most.q);
}

// --- older ledgers ------------------------------------------------------------------------------------

/** The book of a device as the first format had it: every entry with an account. */
async function oldStore(accounts) {
  const store = new Map();
  const surveys = [];
  for (const [i] of accounts.entries()) {
    surveys.push(await surveyFor(`mood ${i}`, LABELS));
    await answered(surveys[i], store);
  }
  const { entries, ...book } = bookOf(store);
  const context = { kind: "uniform", epsilon: "1", domain: { kind: "labels", labels: LABELS, other: null } };
  const dated = entries.flatMap(({ cost, ...entry }, i) =>
    accounts[i].map((account) => ({ account, ...entry, times: 1, context })),
  );
  rewriteBook(store, { ...book, entries: dated, format: 1 });
  return { store, surveys };
}

test("a ledger of the first format counts whole, whatever its accounts were, and is written as the second", async () => {
  const accounts = [["domain aa"], ["subject lunch", "domain bb"], ["subject lunch"]];
  const { store, surveys } = await oldStore(accounts);
  assert.equal(bookOf(store).entries.length, 4);
  const [first] = surveys;
  const client = new Client(first, seams(new Aggregator(first), { store }));
  assert.equal(await client.spent(), 3);
  assert.equal(await answered(first, store), "sent"); // charged before
  assert.equal(bookOf(store).format, 1); // nothing was written
  assert.equal(await answered(await surveyFor("next", LABELS), store), "sent");
  const { format, entries } = bookOf(store);
  assert.deepEqual([format, entries.length], [2, 4]);
  for (const entry of entries) assert.deepEqual(Object.keys(entry).sort(), ["cost", "secret", "survey"]);
  assert.equal(await answered(await surveyFor("one more", LABELS), store), "BudgetExceeded");
});

test("an entry of an unknown kind of context is an error, not free of charge", () => {
  const context = { kind: "later", epsilon_inner: "3" };
  assert.throws(() => withCosts([{ survey: "s", secret: "t", times: 1, context }]), BudgetExceeded);
});

test("a ledger of an unknown format is an error", async () => {
  for (const format of [0, 3, "2", null]) {
    const { store, surveys } = await oldStore([["domain aa"]]);
    rewriteBook(store, { ...bookOf(store), format });
    assert.equal(await answered(surveys[0], store), "BudgetExceeded", String(format));
  }
});

/** Contexts that were legal before surveys had limits of size, and what they cost. */
const HUGE = {
  "uniform over 2^27": [{ kind: "uniform", domain: { kind: "range", size: 2 ** 27, start: 0 }, epsilon: "0.5" }, 0.5],
  "high-low over 2^31": [{ ...highLow(1, 2), domain: { kind: "range", size: 2 ** 31, start: 0 } }, 1],
};

for (const [about, [context, cost]] of Object.entries(HUGE)) {
  test(`an old entry that is larger than surveys may be still counts: ${about}`, async () => {
    const store = new Map();
    const first = await surveyFor("first", LABELS);
    await answered(first, store);
    const book = bookOf(store);
    const old = { survey: "ab".repeat(32), secret: book.secret, times: 1, context };
    rewriteBook(store, { ...book, entries: [...book.entries, old, { ...old, survey: "cd".repeat(32) }] });
    const client = new Client(first, seams(new Aggregator(first), { store }));
    assert.equal(await client.spent(), 1 + 2 * cost);
    const second = await surveyFor("second", LABELS);
    assert.equal(await answered(second, store, { budget: 1 + 2 * cost }), "BudgetExceeded");
    assert.equal(await answered(second, store, { budget: 2 + 2 * cost }), "sent");
  });
}

// --- the conformance kit ------------------------------------------------------------------------------

test("the kit learns what is spent, in lowest terms, and the number of entries", async () => {
  const { request, answer: loaded } = casesOf("samples.json").find(({ about }) => about === "plain, hadamard");
  const answer = answerer();
  await answer(request);
  const survey = loaded.ok.fingerprint;
  const context = JSON.parse(request.text).promise.context;
  const ask = (more) => answer({ op: "charge", survey, secret: "ab", entries: [], budget: null, allow_clear: false, ...more });
  const whole = await ask({});
  assert.equal(whole.ok.entries, 1);
  const entry = { survey, secret: "ab", times: 1, context };
  assert.deepEqual(await ask({ entries: [{ account: "a", ...entry }, { account: "b", ...entry }] }), whole);
  assert.equal((await ask({ entries: [{ ...entry, secret: "cd" }] })).ok.entries, 2);
  const third = { survey: "00", secret: "ab", times: 1, context: { ...context, epsilon: "1/3" } };
  assert.match((await ask({ entries: [third] })).ok.spent, /^\d+\/\d+$/);
  assert.equal((await ask({ entries: [third], budget: "1/3" })).error, "BudgetExceeded");
  assert.deepEqual((await ask({ entries: [third, entry], budget: "1/3" })).ok.entries, 2);
});
