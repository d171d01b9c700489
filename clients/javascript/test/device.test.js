/** Memory and ledger: what a device promises, whatever crashes, is lost or runs back. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { inspect } from "node:util";
import {
  BudgetExceeded,
  Client,
  EntropyUnavailable,
  MemoryUnavailable,
  Survey,
  UnknownValue,
} from "../src/index.js";
import { Aggregator, seams } from "./support/aggregator.js";
import { BOOK, bookOf, lastingStore, SECRET, storageOf } from "./support/storage.js";
import { casesOf, surveyOf, surveyText } from "./support/vectors.js";

const once = await surveyOf("memory.json", "uploads: once");
const daily = await surveyOf("memory.json", "uploads: day");
const DAY = 86_400_000;

/** A client on a store, with an aggregator of its own unless there is one. */
function made(survey, store = lastingStore(), { aggregator = new Aggregator(survey), ...more } = {}) {
  return { aggregator, store, client: new Client(survey, seams(aggregator, { store, ...more })) };
}

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

test("once: storage is the same for all answers as soon as they are counted", async () => {
  for (const isCounted of [true, false]) {
    const { aggregator, client, store } = made(once, undefined, { patience: 0 });
    await client.resumed;
    if (!isCounted) aggregator.faults = ["drop"];
    const { batch } = await client.prepare(once.label(0));
    const { report } = bookOf(store).diaries[once.fingerprint].last;
    assert.equal((await client.answer(once.label(0))).delivered, isCounted);
    const last = { period: "", batch, report: isCounted ? null : report };
    const waiting = isCounted ? [] : [last];
    // The batch is derived from the secret and the survey alone.
    assert.deepEqual(bookOf(store).diaries[once.fingerprint], { last, tokens: [], waiting });
    const prepared = await client.prepare(once.label(1));
    assert.equal(prepared.body === null, isCounted);
    assert.equal(prepared.batch, batch);
    assert.equal(prepared.beacon(), true);
    assert.equal(aggregator.requests.length, isCounted ? 1 : 2);
  }
});

test("365 identical answers say what one says", async () => {
  let now = Date.UTC(2026, 0, 1);
  const { aggregator, client, store } = made(daily, undefined, { clock: () => now });
  for (let day = 0; day < 365; day++, now += DAY) await client.answer(daily.label(1));
  assert.equal(aggregator.batches.size, 365);
  assert.equal(new Set(aggregator.reports).size, 1);
  const [entry, ...others] = bookOf(store).entries;
  assert.deepEqual([entry.cost, others], [`${daily.repeat.distinct}/1`, []]);
});

test("a batch of format 2 names the period of its answer, even if it is sent later", async () => {
  const daily2 = await surveyOf("format_2.json", "uploads of format 2: day");
  const once2 = await surveyOf("format_2.json", "uploads of format 2: once");
  let now = Date.UTC(2026, 0, 1);
  const { aggregator, client } = made(daily2, undefined, { clock: () => now, patience: 0 });
  const bodies = () => aggregator.requests.map(({ body }) => JSON.parse(body));
  await client.answer(daily2.label(1));
  assert.deepEqual(bodies()[0], {
    batch: bodies()[0].batch,
    format: 2,
    period: "2026-01-01",
    reports: aggregator.reports,
    survey: daily2.fingerprint.slice(0, 32),
  });
  aggregator.faults = ["drop"];
  now += DAY;
  assert.equal((await client.answer(daily2.label(1))).delivered, false);
  now += DAY;
  await client.answer(daily2.label(1));
  assert.deepEqual(
    bodies()
      .slice(-2)
      .map(({ period }) => period),
    ["2026-01-02", "2026-01-03"],
  );
  const single = made(once2);
  await single.client.answer(once2.label(0));
  assert.ok(!("period" in JSON.parse(single.aggregator.requests[0].body)));
});

test("the device stores its budget, and a client that passes none uses it", async () => {
  const store = lastingStore();
  await made(once, store, { budget: 1.5 }).client.answer(once.label(0));
  assert.equal(bookOf(store).budget, "1.5");
  const other = await surveyOf("memory.json", "uploads: year");
  await assert.rejects(made(other, store).client.answer(other.label(0)), BudgetExceeded);
  await made(other, store, { budget: null }).client.answer(other.label(0));
  assert.equal(bookOf(store).budget, null);
});

test("at most `distinct` values are sent; then the last report goes on, whatever the value", async () => {
  const text = JSON.parse(surveyText("memory.json", "uploads: day"));
  text.promise.repeat.distinct = 2;
  const two = await Survey.of(JSON.stringify(text));
  let now = Date.UTC(2026, 0, 1);
  const { aggregator, client, store } = made(two, undefined, { clock: () => now });
  const sent = async (x) => {
    await client.answer(two.label(x));
    now += DAY;
    return aggregator.reports.at(-1);
  };
  const [a, b, third] = [await sent(0), await sent(1), await sent(2)];
  assert.equal(third, b);
  assert.equal(await sent(0), a);
  assert.equal(await sent(2), a); // the last report is a's now
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
  const store = lastingStore();
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

/** The survey under another name: another survey over the same domain. */
async function named(name) {
  const data = JSON.parse(surveyText("memory.json", "uploads: once"));
  data.promise.name = name;
  return Survey.of(JSON.stringify(data));
}

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

test("a lost secret is an error while its answers are there, and no new device; forget() is the way out", async () => {
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
  assert.deepEqual(Object.keys(entries[0]).sort(), ["cost", "secret", "survey"]);
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

/** Stand in for what a browser has. */
function browser(t, parts) {
  const before = Object.fromEntries(Object.keys(parts).map((name) => [name, globalThis[name]]));
  const put = (name, value) => Object.defineProperty(globalThis, name, { value, configurable: true, writable: true });
  t.after(() => Object.entries(before).forEach(([name, value]) => put(name, value)));
  Object.entries(parts).forEach(([name, value]) => put(name, value));
}

const REFUSALS = {
  "is denied": { storage: { persist: async () => false } },
  "cannot be asked for": {},
  fails: { storage: { persist: () => Promise.reject(new TypeError("no origin")) } },
};

for (const [how, navigator] of Object.entries(REFUSALS)) {
  test(`where persistent storage ${how}, a repeated survey is refused before anything is charged`, async (t) => {
    const kept = new Map();
    browser(t, { navigator, localStorage: storageOf(kept) });
    const aggregator = new Aggregator(daily);
    const client = new Client(daily, seams(aggregator));
    await assert.rejects(client.answer(daily.label(0)), MemoryUnavailable);
    await assert.rejects(client.prepare(daily.label(0)), MemoryUnavailable);
    assert.deepEqual([kept.size, aggregator.requests.length], [0, 0]);
    // A survey that is answered once does not ask.
    assert.ok((await new Client(once, seams(new Aggregator(once))).answer(once.label(0))).delivered);
  });
}

test("where persistent storage is granted, a repeated survey is answered", async (t) => {
  const kept = new Map();
  let asked = 0;
  const storage = { persist: async () => ++asked > 0 };
  browser(t, { navigator: { storage }, localStorage: storageOf(kept) });
  const client = new Client(daily, seams(new Aggregator(daily)));
  assert.ok((await client.answer(daily.label(0))).delivered);
  assert.equal(asked, 1);
});

test("a repeated survey needs a store that says that it lasts", async () => {
  const storeWith = (methods) => Object.assign(new Map(), methods);
  for (const persist of [() => true, async () => true])
    assert.ok((await made(daily, storeWith({ persist })).client.answer(daily.label(0))).delivered);
  const refused = [
    {},
    { persist: undefined },
    { persist: () => false },
    { persist: async () => false },
    { persist: () => undefined },
    { persist: () => Promise.reject(new Error("no")) },
  ];
  for (const methods of refused) {
    const { client, store, aggregator } = made(daily, storeWith(methods));
    await assert.rejects(client.answer(daily.label(0)), MemoryUnavailable);
    assert.deepEqual([store.size, aggregator.requests.length], [0, 0]);
    assert.ok((await made(once, store).client.answer(once.label(0))).delivered); // asked once, it needs no promise
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
