/** Sending: the same bytes until they are counted, once; and no request that depends on the value. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Client, InvalidBatch, NotDelivered, ReportRejected, Survey, WrongSurvey } from "../src/index.js";
import { Aggregator, answered, seams } from "./support/aggregator.js";
import { lastingStore } from "./support/storage.js";
import { surveyOf, surveyText } from "./support/vectors.js";

const once = await surveyOf("memory.json", "uploads: once");
const weekly = await surveyOf("memory.json", "uploads: week");

function made(survey, { aggregator = new Aggregator(survey), store = lastingStore(), ...more } = {}) {
  return { aggregator, store, client: new Client(survey, seams(aggregator, { store, ...more })) };
}

test("a batch is posted as the wire wants it", async () => {
  const { aggregator, client } = made(once);
  const { batch } = await client.answer(once.label(0));
  const [{ url, method, headers, body, keepalive, credentials, redirect, referrerPolicy }] = aggregator.requests;
  assert.equal(url, `https://surveys.example.org/here/v1/surveys/${once.fingerprint}/batches`);
  assert.deepEqual(
    { method, headers, keepalive, credentials, redirect, referrerPolicy },
    {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      keepalive: true,
      credentials: "omit",
      redirect: "error",
      referrerPolicy: "no-referrer",
    },
  );
  assert.match(
    body,
    new RegExp(`^{"batch":"${batch}","format":1,"reports":\\[[0-3]\\],"survey":"${once.fingerprint}"}$`),
  );
});

test("what is lost, on the way there or back, is sent again and counted once", async () => {
  for (const faults of [["drop"], ["lose"], ["drop", "lose", "drop"], [503, "lose", 429], [502, 504, 507, 408, 500]]) {
    const { aggregator, client } = made(once, { patience: Infinity });
    aggregator.faults = [...faults];
    assert.ok((await client.answer(once.label(1))).delivered);
    assert.equal(aggregator.requests.length, faults.length + 1);
    assert.equal(new Set(aggregator.requests.map(({ body }) => body)).size, 1);
    assert.equal(aggregator.batches.size, 1);
  }
});

test("pauses grow, with some chance in them, and heed Retry-After", async () => {
  const pauses = [];
  const { aggregator, client } = made(once, { patience: Infinity, sleep: async (pause) => pauses.push(pause) });
  aggregator.faults = Array(9).fill("drop");
  await client.answer(once.label(0));
  pauses.forEach((pause, i) => {
    const most = Math.min(500 * 2 ** i, 30_000);
    assert.ok(pause >= most / 2 && pause <= most, `${pause} of ${most}`);
  });
  assert.equal(pauses.length, 9);
  pauses.length = 0;
  const patient = made(once, { patience: Infinity, sleep: async (pause) => pauses.push(pause) });
  patient.aggregator.headers = { "Retry-After": "120" };
  patient.aggregator.faults = [429, 503];
  await patient.client.answer(once.label(0));
  assert.deepEqual(pauses, [120_000, 120_000]);
});

test("Retry-After may be a date", async () => {
  const pauses = [];
  const { aggregator, client } = made(once, { patience: Infinity, sleep: async (pause) => pauses.push(pause) });
  aggregator.headers = { "Retry-After": new Date(Date.now() + 3_600_000).toUTCString() };
  aggregator.faults = [503];
  await client.answer(once.label(0));
  assert.ok(pauses[0] > 3_000_000 && pauses[0] <= 3_600_000, `${pauses}`);
  for (const nonsense of ["soon", "0", "-5", "Mon, 01 Jan 2001 00:00:00 GMT"]) {
    const other = made(once, { patience: Infinity, sleep: async (pause) => pauses.push(pause) });
    other.aggregator.headers = { "Retry-After": nonsense };
    other.aggregator.faults = [503];
    await other.client.answer(once.label(0));
    assert.ok(pauses.at(-1) >= 250 && pauses.at(-1) <= 500, nonsense);
  }
});

test("patience is over when its time is, wherever the time went", async () => {
  let now = 5;
  const aggregator = new Aggregator(once);
  const slow = (...request) => ((now += 6_000), aggregator.fetch(...request));
  const { client } = made(once, { aggregator, fetch: slow, now: () => now, sleep: async (pause) => (now += pause) });
  aggregator.faults = Array(50).fill("drop");
  assert.equal((await client.answer(once.label(0))).delivered, false);
  assert.equal(aggregator.requests.length, 2); // 6 s, a pause below a second, 6 s: that is above 10 s
});

test("pauses need no entropy: without it they are whole", async (t) => {
  const { crypto } = globalThis;
  const put = (value) => Object.defineProperty(globalThis, "crypto", { value, configurable: true, writable: true });
  t.after(() => put(crypto));
  const pauses = [];
  const { aggregator, client } = made(once, { patience: Infinity, sleep: async (pause) => pauses.push(pause) });
  await client.prepare(once.label(0));
  put({ subtle: crypto.subtle });
  aggregator.faults = ["drop", "drop"];
  await client.flush();
  assert.deepEqual([pauses, aggregator.batches.size], [[500, 1000], 1]);
});

test("patience ends: the answer waits, and a later load delivers it", async () => {
  const { aggregator, client, store } = made(once);
  aggregator.faults = Array(50).fill("drop");
  const waits = await client.answer(once.label(2));
  assert.deepEqual([waits.delivered, waits.waiting], [false, 1]);
  assert.ok(aggregator.requests.length > 2);
  await assert.rejects(client.flush(), NotDelivered);
  aggregator.faults = [];
  const next = new Client(once, seams(aggregator, { store }));
  await next.resumed;
  assert.equal(aggregator.batches.size, 1);
  assert.equal(new Set(aggregator.requests.map(({ body }) => body)).size, 1);
  const before = aggregator.requests.length;
  assert.ok((await next.answer(once.label(0))).delivered);
  assert.equal(aggregator.requests.length, before);
});

test("answers of several periods wait together and go oldest first", async () => {
  let now = Date.UTC(2026, 10, 15);
  const { aggregator, client } = made(weekly, { clock: () => now });
  await client.resumed;
  aggregator.faults = Array(60).fill(503);
  for (let week = 0; week < 3; week++, now += 7 * 86_400_000) {
    assert.equal((await client.answer(weekly.label(0))).waiting, week + 1);
  }
  aggregator.faults = [];
  const tried = aggregator.requests.length;
  await client.flush();
  assert.equal(aggregator.batches.size, 3);
  const bodies = aggregator.requests.slice(tried).map(({ body }) => body);
  assert.deepEqual(bodies, [...aggregator.batches.values()]);
  assert.equal(bodies[0], aggregator.requests[0].body);
});

test("what was delivered waits no longer; what was not, does", async () => {
  let now = Date.UTC(2026, 10, 15);
  const { aggregator, client } = made(weekly, { clock: () => now, patience: 0 });
  aggregator.faults = ["drop"];
  await client.answer(weekly.label(0));
  now += 7 * 86_400_000;
  aggregator.faults = [undefined, "drop"]; // the older one arrives, the new one does not
  const second = await client.answer(weekly.label(0));
  assert.deepEqual([second.delivered, second.waiting], [false, 1]);
  assert.equal(aggregator.batches.size, 1);
  await client.flush();
  assert.equal(aggregator.batches.size, 2);
  assert.equal(aggregator.requests.length, 4);
});

test("back online, what waits is sent by itself", async (t) => {
  const listeners = [];
  globalThis.addEventListener = (name, listener) => listeners.push([name, listener]);
  t.after(() => delete globalThis.addEventListener);
  const { aggregator, client } = made(once, { patience: 0 });
  aggregator.faults = ["drop"];
  assert.equal((await client.answer(once.label(0))).delivered, false);
  const [[name, online]] = listeners;
  assert.equal(name, "online");
  await online();
  assert.equal(aggregator.batches.size, 1);
});

test("refusals are errors of their own; the answer is not lost", async () => {
  const refusals = {
    400: InvalidBatch,
    404: WrongSurvey,
    409: InvalidBatch,
    410: WrongSurvey,
    413: InvalidBatch,
    415: InvalidBatch,
    422: ReportRejected,
  };
  for (const [status, error] of Object.entries(refusals)) {
    const { aggregator, client } = made(once);
    aggregator.faults = [Number(status)];
    await assert.rejects(
      client.answer(once.label(0)),
      (problem) => problem instanceof error && problem.constructor === error,
      status,
    );
    assert.equal(aggregator.requests.length, 1); // no second try
    assert.ok((await client.answer(once.label(0))).delivered);
  }
  const { aggregator, client } = made(once);
  aggregator.faults = [403];
  assert.equal((await client.answer(once.label(0))).delivered, false); // not open yet: it waits
  assert.equal(aggregator.requests.length, 1);
});

test("an older answer of this device stands: that is an answer, too", async () => {
  const { aggregator, client } = made(once);
  const { body, batch } = await client.prepare(once.label(0));
  aggregator.batches.set(batch, body.replace(/\[\d+\]/, "[99]"));
  assert.ok((await client.answer(once.label(0))).delivered);
  assert.deepEqual(aggregator.reports, [99]);
  await client.answer(once.label(0));
  assert.equal(aggregator.requests.length, 1);
});

test("anybody can answer 200: only the receipt of the batch counts", async () => {
  const receipts = [
    () => answered(200, "<p>Log in to the hotel</p>"),
    () => answered(200, "null"),
    () => answered(201, { batch: "0".repeat(32), reports: 1, survey: once.fingerprint }),
    () => answered(204 + 1, { batch: "0".repeat(32) }),
  ];
  const { aggregator, client } = made(once, { patience: Infinity });
  // The aggregator in these tests counts first, and then somebody else answers in its place.
  aggregator.faults = [...receipts];
  assert.ok((await client.answer(once.label(0))).delivered);
  assert.equal(aggregator.requests.length, receipts.length + 1);
  assert.equal(aggregator.batches.size, 1);
});

test("what was prepared is the answer: a later load sends it, beacon or not", async () => {
  const { aggregator, client, store } = made(once);
  const prepared = await client.prepare(once.label(1));
  assert.equal(aggregator.requests.length, 0);
  await new Client(once, seams(aggregator, { store })).resumed;
  assert.deepEqual([...aggregator.batches.values()], [prepared.body]);
});

test("errors hold what they are declared to hold, and no report", async () => {
  for (const status of [503, 403, 400, 404, 410, 422]) {
    const { aggregator, client } = made(once, { patience: 0 });
    await client.prepare(once.label(0));
    aggregator.faults = [status];
    const problem = await client.flush().catch((found) => found);
    const declared = problem instanceof ReportRejected ? ["index"] : [];
    assert.deepEqual(Reflect.ownKeys(problem).sort(), [...declared, "message", "name", "stack"]);
  }
});

test("what waits is not sent once the device was told to forget", async () => {
  let now = Date.UTC(2026, 10, 15);
  const { aggregator, client, store } = made(weekly, { clock: () => now, patience: 0 });
  await client.resumed;
  aggregator.faults = ["drop", "drop"];
  await client.answer(weekly.label(0));
  now += 7 * 86_400_000;
  assert.equal((await client.answer(weekly.label(0))).waiting, 2);
  // While the first of the two is on its way, somebody tells the device to forget.
  const fetch = async (...request) => (await client.forget(), aggregator.fetch(...request));
  await new Client(weekly, seams(aggregator, { store, fetch })).resumed;
  assert.equal(aggregator.batches.size, 1);
});

test("prepared ahead, sent as the page goes away, confirmed at the next load", async () => {
  const { aggregator, client, store } = made(once);
  const prepared = await client.prepare(once.label(1));
  assert.equal(aggregator.requests.length, 0);
  assert.equal(prepared.beacon(), true);
  assert.equal(prepared.beacon(), true);
  assert.deepEqual(
    aggregator.requests.map(({ body }) => body),
    [prepared.body, prepared.body],
  );
  assert.ok(aggregator.requests.every(({ keepalive, credentials }) => keepalive && credentials === "omit"));
  await new Client(once, seams(aggregator, { store })).resumed;
  assert.equal(aggregator.requests.length, 3);
  assert.equal(aggregator.batches.size, 1);
});

test("where fetch does not outlive the page, a beacon does it", async (t) => {
  const { Request, navigator } = globalThis;
  const put = (name, value) => Object.defineProperty(globalThis, name, { value, configurable: true, writable: true });
  t.after(() => [put("Request", Request), put("navigator", navigator)]);
  const sent = [];
  put("Request", class {});
  put("navigator", { sendBeacon: (url, blob) => sent.push([url, blob]) > 0 });
  const { aggregator, client } = made(once);
  const prepared = await client.prepare(once.label(1));
  assert.equal(prepared.beacon(), true);
  const [[url, blob]] = sent;
  assert.deepEqual([url, blob.type, await blob.text()], [prepared.address, "application/json", prepared.body]);
  assert.equal(aggregator.requests.length, 0);
});

test("where there are locks, state is touched under one", async (t) => {
  const { navigator } = globalThis;
  const put = (value) => Object.defineProperty(globalThis, "navigator", { value, configurable: true, writable: true });
  t.after(() => put(navigator));
  let [held, taken] = [false, 0];
  put({
    locks: {
      async request(name, work) {
        assert.equal(held, false);
        [held, taken] = [true, taken + 1];
        return work().finally(() => (held = false));
      },
    },
  });
  const map = new Map();
  const locked = (act) => (assert.ok(held), act);
  const store = {
    get: (key) => locked(map.get(key)),
    set: (key, text) => locked(map.set(key, text)),
    delete: (key) => locked(map.delete(key)),
  };
  const { client } = made(once, { store });
  await client.resumed;
  assert.ok((await client.answer(once.label(0))).delivered);
  await client.forget();
  assert.ok(taken >= 4);
});

test("requests do not depend on the value: as many, to the same addresses, of the same form", async () => {
  for (const survey of [once, weekly, await surveyOf("samples.json", "high-low, hadamard")]) {
    const recorded = [];
    for (let x = 0; x < survey.size; x++) {
      const aggregator = new Aggregator(survey, surveyText("memory.json", "uploads: once"));
      const client = new Client(survey, seams(aggregator, { store: lastingStore(), allowClear: true }));
      await client.answer(survey.label(x));
      await client.answer(survey.label((x + 1) % survey.size));
      // A report has as many digits as it has: that depends on the report, not on the value. So has the body's length.
      recorded.push(
        aggregator.requests.map(({ body, signal, ...request }) => ({
          ...request,
          body: body.replace(/"batch":"\w+"/, "").replace(/\[\d+\]/, "[]"),
        })),
      );
    }
    for (const requests of recorded) assert.deepEqual(requests, recorded[0]);
    assert.equal(recorded[0].length, 1);
  }
});

test("the survey is fetched before any value is there to depend on", async () => {
  const text = surveyText("memory.json", "uploads: once");
  const aggregator = new Aggregator(once, text);
  const survey = await Survey.load(aggregator.url, { fingerprint: once.fingerprint, fetch: aggregator.fetch });
  await new Client(survey, seams(aggregator, { store: new Map() })).answer(survey.label(0));
  assert.deepEqual(
    aggregator.requests.map(({ method = "GET" }) => method),
    ["GET", "POST"],
  );
});
