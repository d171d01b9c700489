/** Memory and ledger: what a device promises, whatever crashes, is lost or runs back. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { inspect } from "node:util";
import {
  BudgetExceeded,
  Client,
  EntropyUnavailable,
  InvalidSurvey,
  MemoryUnavailable,
  Survey,
  UnknownValue,
} from "../src/index.js";
import { Aggregator, seams } from "./support/aggregator.js";
import { casesOf, surveyOf, surveyText } from "./support/vectors.js";

const once = await surveyOf("memory.json", "uploads: once");
const daily = await surveyOf("memory.json", "uploads: day");
const [SECRET, BOOK] = ["sfumato/1/secret", "sfumato/1/book"];
const DAY = 86_400_000;

/** A client on a store, with an aggregator of its own unless there is one. */
function made(survey, store = new Map(), more = {}) {
  const aggregator = more.aggregator ?? new Aggregator(survey);
  return { aggregator, store, client: new Client(survey, seams(aggregator, { store, ...more })) };
}

const bookOf = (store) => JSON.parse(store.get(BOOK).slice(65));

/** A value of the survey other than some. */
const otherThan = (survey, ...symbols) => survey.label([0, 1, 2].find((x) => !symbols.includes(x)));

test("the report is derived from the secret, as the vectors say", async () => {
  for (const { about, request, answer } of casesOf("memory.json")
    .filter(({ request }) => request.op === "remembered")
    .slice(0, 40)) {
    const load = casesOf("memory.json").find(
      ({ answer: { ok }, request: { op } }) => op === "load" && ok.fingerprint === request.survey,
    );
    const survey = await Survey.of(load.request.text);
    const found = survey.reportFrom(
      request.symbol,
      [0, 16].map((at) => BigInt(`0x${answer.ok.words.slice(at, at + 16)}`)),
    );
    assert.equal(found, answer.ok.report, about);
  }
});

test("once: the first answer stands, and is sent once", async () => {
  const { aggregator, client, store } = made(once);
  const first = await client.answer(once.label(0));
  assert.deepEqual(first, { survey: once.fingerprint, batch: first.batch, delivered: true, waiting: 0 });
  for (const x of [1, 2, 0]) assert.deepEqual(await client.answer(once.label(x)), first);
  assert.equal(aggregator.requests.length, 1);
  assert.equal(aggregator.reports.length, 1);
  // A second tab, a second load: the same device.
  assert.deepEqual(await made(once, store, { aggregator }).client.answer(once.label(1)), first);
  assert.equal(aggregator.requests.length, 1);
});

test("365 identical answers say what one says", async () => {
  let now = Date.UTC(2026, 0, 1);
  const { aggregator, client, store } = made(daily, undefined, { clock: () => now });
  for (let day = 0; day < 365; day++, now += DAY) await client.answer(daily.label(1));
  assert.equal(aggregator.batches.size, 365);
  assert.equal(new Set(aggregator.reports).size, 1);
  assert.equal(bookOf(store).entries.length, 1);
  assert.equal(bookOf(store).entries[0].times, daily.repeat.distinct);
});

test("at most `distinct` values are told; then the last report goes on, whatever the value", async () => {
  const text = JSON.parse(surveyText("memory.json", "uploads: day"));
  text.promise.repeat.distinct = 2;
  const two = await Survey.of(JSON.stringify(text));
  let now = Date.UTC(2026, 0, 1);
  const { aggregator, client, store } = made(two, undefined, { clock: () => now });
  const told = async (x) => {
    await client.answer(two.label(x));
    now += DAY;
    return aggregator.reports.at(-1);
  };
  const [a, b, third] = [await told(0), await told(1), await told(2)];
  assert.equal(third, b);
  assert.equal(await told(0), a);
  assert.equal(await told(2), a); // the last report is a's now
  // An unknown value is new then, as any other; before, it is an error, for there is nothing to say yet.
  await client.answer({ not: "a label" });
  assert.deepEqual([aggregator.reports.at(-1), aggregator.batches.size], [a, 6]);
  const early = made(two);
  await early.client.answer(two.label(0));
  const later = { clock: () => Date.UTC(2027, 0, 1) };
  await assert.rejects(made(two, early.store, later).client.answer({ not: "a label" }), UnknownValue);
  assert.equal(bookOf(store).diaries[two.fingerprint].tokens.length, 2);
});

test("distinct = 1: no token is kept, and the first report goes on", async () => {
  const text = JSON.parse(surveyText("memory.json", "uploads: day"));
  text.promise.repeat.distinct = 1;
  const one = await Survey.of(JSON.stringify(text));
  let now = Date.UTC(2026, 0, 1);
  const { aggregator, client, store } = made(one, undefined, { clock: () => (now += DAY) });
  for (const x of [0, 1, 2, 1]) await client.answer(one.label(x));
  assert.equal(aggregator.batches.size, 4);
  assert.equal(new Set(aggregator.reports).size, 1);
  assert.deepEqual(bookOf(store).diaries[one.fingerprint].tokens, []);
});

test("a clock that is set back refills nothing and sends at most replays", async () => {
  let now = Date.UTC(2026, 5, 15);
  const { aggregator, client, store } = made(daily, undefined, { clock: () => now });
  await client.answer(daily.label(0));
  const [batches, book] = [new Map(aggregator.batches), store.get(BOOK)];
  for (const back of [DAY, 30 * DAY, 20_000 * DAY]) {
    now = Date.UTC(2026, 5, 15) - back;
    for (const x of [0, 1, 2]) await client.answer(daily.label(x));
  }
  assert.deepEqual(aggregator.batches, batches);
  assert.equal(store.get(BOOK), book);
});

test("one answer a period: the first of the day stands", async () => {
  const { aggregator, client } = made(daily);
  await client.answer(daily.label(0));
  await client.answer(daily.label(2));
  assert.equal(aggregator.batches.size, 1);
});

// --- the ledger ---------------------------------------------------------------------------------------

test("the whole cost is charged, durably, before the value is read", async () => {
  const store = new Map();
  const { aggregator, client } = made(daily, store);
  const seen = [];
  const value = {
    get latitude() {
      seen.push(bookOf(store).entries.length);
      return 0;
    },
  };
  const grid = await Survey.of(
    casesOf("domains.json").find(({ request }) => request.op === "load" && request.text.includes('"kind":"grid"'))
      .request.text,
  );
  await made(grid, store)
    .client.answer(value)
    .catch(() => {});
  assert.deepEqual(seen.slice(0, 1), [1]);
  await assert.rejects(client.answer({ not: "a label" }), UnknownValue);
  assert.equal(bookOf(store).entries.length, 2);
  assert.equal(aggregator.requests.length, 0);
});

/** The survey under other names: so many surveys over one domain. */
async function named(name, change = () => {}) {
  const data = JSON.parse(surveyText("memory.json", "uploads: once"));
  data.promise.name = name;
  change(data.promise);
  return Survey.of(JSON.stringify(data));
}

test("beyond the cap nothing is sent, and time does not help", async () => {
  const epsilon = JSON.parse(surveyText("memory.json", "uploads: once")).promise.context.epsilon;
  const cap = { kind: "uniform", epsilon: String(2 * Number(epsilon)) };
  const store = new Map();
  for (const name of ["first", "second"]) {
    const { client } = made(await named(name), store, { cap });
    assert.ok((await client.answer(once.label(0))).delivered);
    assert.ok((await client.answer(once.label(1))).delivered); // later sends cost nothing
  }
  const { aggregator, client } = made(await named("third"), store, { cap, clock: () => Date.UTC(2099, 0, 1) });
  const before = store.get(BOOK);
  await assert.rejects(client.answer(once.label(0)), BudgetExceeded);
  assert.equal(aggregator.requests.length, 0);
  assert.equal(store.get(BOOK), before);
  // Another account is another matter; a higher cap lets it answer.
  assert.ok(
    (await made(await named("third"), store, { cap, subject: "lunch" }).client.answer(once.label(0))).delivered,
  );
  assert.ok(
    (await made(await named("third"), store, { cap: { kind: "uniform", epsilon: "20" } }).client.answer(once.label(0)))
      .delivered,
  );
});

test("a cap is kept pair by pair, and a survey with distinct values costs that many times", async () => {
  const epsilon = Number(JSON.parse(surveyText("memory.json", "uploads: once")).promise.context.epsilon);
  const low = Buffer.from(Uint32Array.of(2).buffer).toString("base64");
  const answer = async (survey, cap) => made(survey, new Map(), { cap }).client.answer(survey.label(0));
  // Only symbol 2 is protected by this cap, and uniform surveys spend on all pairs.
  await answer(once, { kind: "high-low", epsilon: String(epsilon), sensitive: low });
  await assert.rejects(
    answer(once, { kind: "high-low", epsilon: String(epsilon - 0.1), sensitive: low }),
    BudgetExceeded,
  );
  await answer(daily, { kind: "uniform", epsilon: String(3 * epsilon) });
  await assert.rejects(answer(daily, { kind: "uniform", epsilon: String(3 * epsilon - 0.001) }), BudgetExceeded);
  assert.throws(() => made(once, new Map(), { cap: { kind: "uniform" } }), InvalidSurvey);
});

test("a subject's account adds up over domains: of another one, the largest entry counts", async () => {
  const other = await surveyOf("samples.json", "high-low, hadamard"); // it has pairs without a promise
  const [store, subject] = [new Map(), "lunch"];
  await made(other, store, { subject }).client.answer(other.label(0));
  await assert.rejects(
    made(once, store, { subject, cap: { kind: "uniform", epsilon: "40" } }).client.answer(once.label(0)),
    BudgetExceeded,
  );
  assert.ok((await made(once, store, { subject }).client.answer(once.label(0))).delivered);
});

test("a book cut off anywhere is an error, and never an empty one", async () => {
  const { store } = made(once);
  await made(once, store).client.answer(once.label(0));
  const whole = store.get(BOOK);
  const next = await named("next");
  for (let length = 0; length < whole.length; length += length < 80 ? 1 : 37) {
    const damaged = new Map(store).set(BOOK, whole.slice(0, length));
    const { aggregator, client } = made(next, damaged);
    await assert.rejects(client.answer(next.label(0)), BudgetExceeded, `length ${length}`);
    assert.equal(aggregator.requests.length, 0);
    assert.equal(damaged.get(BOOK), whole.slice(0, length));
  }
  for (const at of [0, 70, whole.length - 3]) {
    const flipped = whole.slice(0, at) + (whole[at] === "0" ? "1" : "0") + whole.slice(at + 1);
    await assert.rejects(made(next, new Map(store).set(BOOK, flipped)).client.answer(next.label(0)), BudgetExceeded);
  }
});

test("a lost book where there is a secret is an error; a damaged secret, too", async () => {
  const { client, store } = made(once);
  await client.answer(once.label(0));
  const lost = new Map(store);
  lost.delete(BOOK);
  await assert.rejects(made(once, lost).client.answer(once.label(0)), BudgetExceeded);
  for (const secret of ["", "00", store.get(SECRET).slice(2), "f".repeat(64)]) {
    await assert.rejects(made(once, new Map(store).set(SECRET, secret)).client.answer(once.label(0)), BudgetExceeded);
  }
});

test("a crash at any write leaves a device that goes on, and never a second report or a refilled account", async () => {
  for (let crash = 1; crash <= 5; crash++) {
    const store = new Map();
    let writes = 0;
    const brittle = {
      get: (key) => store.get(key),
      delete: (key) => store.delete(key),
      set(key, text) {
        if (++writes === crash) throw new Error("the power is gone");
        store.set(key, text);
      },
    };
    const aggregator = new Aggregator(once);
    const crashed = made(once, brittle, { aggregator });
    await crashed.client.answer(once.label(0)).catch((problem) => assert.ok(problem instanceof MemoryUnavailable));
    const sent = new Map(aggregator.batches);
    const charged = store.has(BOOK) ? bookOf(store).entries.length : 0;
    const { client } = made(once, store, { aggregator });
    assert.ok((await client.answer(once.label(1))).delivered);
    assert.equal(aggregator.batches.size, 1);
    for (const [batch, body] of sent) assert.equal(aggregator.batches.get(batch), body);
    assert.equal(bookOf(store).entries.length, 1);
    assert.ok(charged <= 1);
  }
});

test("a lost secret beside its answers is an error, and no new device; to forget is the way out", async () => {
  const { aggregator, client, store } = made(once);
  await client.answer(once.label(0));
  const book = store.get(BOOK);
  store.delete(SECRET);
  const next = made(once, store, { aggregator }).client;
  await assert.rejects(next.answer(once.label(0)), (problem) => {
    return problem instanceof BudgetExceeded && problem.message.includes("forget()");
  });
  await assert.rejects(next.flush(), BudgetExceeded);
  assert.deepEqual([store.has(SECRET), store.get(BOOK)], [false, book]);
  assert.equal(aggregator.requests.length, 1);
  await next.forget();
  assert.ok((await next.answer(once.label(0))).delivered);
  assert.equal(bookOf(store).entries.length, 2); // and it costs again
});

test("a subject is one account, however its name is typed, and is text", async () => {
  const [store, cap] = [new Map(), { kind: "uniform", epsilon: "1.5" }];
  const [composed, apart] = ["caf\u00e9", "cafe\u0301"];
  const [first, second] = [await named("first"), await named("second")];
  assert.ok((await made(first, store, { cap, subject: composed }).client.answer(first.label(0))).delivered);
  await assert.rejects(made(second, store, { cap, subject: apart }).client.answer(second.label(0)), BudgetExceeded);
  // What is read is what was written: the entry is found again.
  assert.ok((await made(first, store, { cap, subject: apart }).client.answer(first.label(0))).delivered);
  assert.deepEqual(
    bookOf(store).entries.map(({ account }) => account),
    [`subject ${composed}`],
  );
  for (const subject of ["", 7, 0, false, {}, ["lunch"]])
    assert.throws(() => made(first, new Map(), { subject }), InvalidSurvey);
});

test("two clients at once give one report", async () => {
  const store = new Map();
  const aggregator = new Aggregator(once);
  const clients = Array.from({ length: 8 }, () => made(once, store, { aggregator }).client);
  const answers = await Promise.all(clients.map((client, i) => client.answer(once.label(i % 3))));
  assert.equal(new Set(answers.map(({ batch }) => batch)).size, 1);
  assert.equal(aggregator.batches.size, 1);
  assert.equal(bookOf(store).entries.length, 1);
});

test("forgetting drops the memory, not the ledger: answering again costs again", async () => {
  const { aggregator, client, store } = made(once);
  const first = await client.answer(once.label(0));
  await client.forget();
  assert.equal(store.has(SECRET), false);
  assert.deepEqual(bookOf(store).diaries, {});
  assert.equal(bookOf(store).entries.length, 1);
  assert.notEqual((await client.answer(once.label(0))).batch, first.batch);
  assert.equal(bookOf(store).entries.length, 2);
  assert.equal(aggregator.batches.size, 2);
});

test("nothing that is kept or shown holds a value or the secret", async () => {
  const { client, store } = made(daily);
  const value = daily.label(0);
  await client.answer(value);
  const { entries, diaries } = bookOf(store);
  assert.ok(entries[0].context); // the survey's labels are there, for they are public
  assert.ok(!JSON.stringify(diaries).includes(JSON.stringify(value)));
  assert.ok(!inspect(client, { depth: 9, showHidden: true }).includes(store.get(SECRET)));
});

// --- what a platform may lack -------------------------------------------------------------------------

test("storage that is denied, missing, full or forgetful: a clear error, and nothing is sent", async () => {
  const denied = () => {
    throw new DOMException("denied", "SecurityError");
  };
  const full = new Map();
  const stores = {
    denied: { get: denied, set: denied, delete: denied },
    missing: undefined, // Node has no localStorage
    full: { get: (key) => full.get(key), set: denied, delete: () => {} },
    forgetful: { get: () => null, set: () => {}, delete: () => {} },
    later: { get: async () => null, set: () => Promise.reject(new Error("quota")), delete: async () => {} },
  };
  for (const [name, store] of Object.entries(stores)) {
    const aggregator = new Aggregator(once);
    const client = new Client(once, seams(aggregator, { store }));
    await assert.rejects(client.answer(once.label(0)), MemoryUnavailable, name);
    await assert.rejects(client.prepare(once.label(0)), MemoryUnavailable, name);
    assert.equal(aggregator.requests.length, 0);
  }
});

test("a store may answer by promises", async () => {
  const map = new Map();
  const store = {
    get: async (key) => map.get(key),
    set: async (key, text) => map.set(key, text),
    delete: async (key) => map.delete(key),
  };
  assert.ok((await made(once, store).client.answer(once.label(0))).delivered);
});

test("without cryptography nothing is privatised", async (t) => {
  const { crypto } = globalThis;
  const put = (value) => Object.defineProperty(globalThis, "crypto", { value, configurable: true, writable: true });
  t.after(() => put(crypto));
  const { aggregator, client } = made(once);
  await client.resumed;
  const platforms = {
    none: undefined,
    failing: {
      getRandomValues: () => {
        throw new Error("no entropy");
      },
      subtle: crypto.subtle,
    },
    stuck: { getRandomValues: (array) => array.fill(7n), subtle: crypto.subtle },
    insecure: { getRandomValues: (array) => crypto.getRandomValues(array) }, // a page over http
  };
  for (const [name, platform] of Object.entries(platforms)) {
    put(platform);
    // The secret first: a stuck source must be found out at its very first draw.
    await assert.rejects(client.answer(once.label(0)), EntropyUnavailable, name);
    if (name !== "insecure") assert.throws(() => once.privatize(once.label(0)), EntropyUnavailable, name);
  }
  // A source that says the same at each draw is found out at the second one.
  let first = 1;
  put({ getRandomValues: (array) => array.forEach((_, i) => (array[i] = BigInt(first + i))), subtle: crypto.subtle });
  // Words are drawn for 128 people at a time.
  for (first of [1000, 2000, 3000]) for (let i = 0; i < 128; i++) once.privatize(once.label(0));
  assert.throws(() => once.privatize(once.label(0)), EntropyUnavailable);
  assert.equal(aggregator.requests.length, 0);
});
