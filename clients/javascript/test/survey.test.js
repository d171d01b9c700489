/** Loading a survey, from values to symbols, and the client's own check of the promise. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { contextOf } from "../src/context.js";
import {
  InvalidSurvey,
  InvalidSymbols,
  NotDelivered,
  PrivacyViolation,
  Survey,
  UnknownValue,
  WrongSurvey,
} from "../src/index.js";
import { exactNumber, withinOdds } from "../src/odds.js";
import { Aggregator, answered } from "./support/aggregator.js";
import { blocks, clearCode, e, evenCode, groupsOfTwo, packed, randomizedCode, resolved, uniform } from "./support/large.js";
import { casesOf, surveyOf, surveyText } from "./support/vectors.js";

const TEXT = surveyText("samples.json", "plain, hadamard");
const survey = await Survey.of(TEXT);

test("a survey is fetched by its pin, whole, without cookies", async () => {
  const aggregator = new Aggregator(survey, TEXT);
  const loaded = await Survey.load(`${aggregator.url}/`, { fingerprint: survey.fingerprint, fetch: aggregator.fetch });
  assert.equal(loaded.fingerprint, survey.fingerprint);
  const [request] = aggregator.requests;
  assert.equal(request.url, `https://surveys.example.org/here/v1/surveys/${survey.fingerprint}`);
  assert.equal(request.credentials, "omit");
});

test("another survey than the pinned one is refused", async () => {
  const other = surveyText("samples.json", "plain, cyclic");
  const aggregator = new Aggregator(survey, other);
  const options = { fingerprint: survey.fingerprint, fetch: aggregator.fetch };
  await assert.rejects(Survey.load(aggregator.url, options), WrongSurvey);
  await assert.rejects(Survey.of(other, { fingerprint: survey.fingerprint }), WrongSurvey);
  await assert.rejects(Survey.load(aggregator.url, { ...options, fingerprint: undefined }), WrongSurvey);
  // A pin that was forgotten is not the same as none.
  for (const fingerprint of [undefined, null, "", 0, false])
    await assert.rejects(Survey.of(other, { fingerprint }), WrongSurvey);
  for (const none of [undefined, {}]) assert.ok(await Survey.of(other, none));
});

test("unknown options are refused, so that a misspelt pin is not ignored", async () => {
  const aggregator = new Aggregator(survey, TEXT);
  const pin = survey.fingerprint;
  for (const more of [{ fingerPrint: pin }, { pin }]) {
    await assert.rejects(Survey.of(TEXT, more), InvalidSymbols);
    await assert.rejects(Survey.of(TEXT, { fingerprint: pin, ...more }), InvalidSymbols);
    const options = { fingerprint: pin, fetch: aggregator.fetch, ...more };
    await assert.rejects(Survey.load(aggregator.url, options), InvalidSymbols);
  }
  assert.equal(aggregator.requests.length, 0);
  assert.ok(await Survey.of(TEXT, { fingerprint: pin }));
});

test("a deeply nested document is an invalid survey, pinned or not", async () => {
  for (let depth = 500; depth <= 6000; depth += 250) {
    const context = `${'{"parts":['.repeat(depth)}1${"]}".repeat(depth)}`;
    const text = `{"about":{},"promise":{"context":${context},"mechanism":{},"mechanism_context":null}}`;
    await assert.rejects(Survey.of(text), InvalidSurvey, String(depth));
    await assert.rejects(Survey.of(text, { fingerprint: survey.fingerprint }), (problem) => {
      return problem instanceof InvalidSurvey || problem instanceof WrongSurvey;
    });
  }
});

test("what the aggregator answers instead of a survey", async () => {
  const load = (answer) =>
    Survey.load("https://a.example", { fingerprint: survey.fingerprint, fetch: async () => answer });
  await assert.rejects(load(answered(404, {})), WrongSurvey);
  await assert.rejects(load(answered(503, {})), NotDelivered);
  await assert.rejects(load(answered(200, "<p>Log in to the hotel</p>")), InvalidSurvey);
  const unreachable = () => Promise.reject(new TypeError("fetch failed"));
  await assert.rejects(
    Survey.load("https://a.example", { fingerprint: survey.fingerprint, fetch: unreachable }),
    NotDelivered,
  );
  await assert.rejects(
    Survey.load("ftp://a.example", { fingerprint: survey.fingerprint, fetch: unreachable }),
    NotDelivered,
  );
});

test("bytes are read as text is, but for a byte-order mark or what is no UTF-8", async () => {
  const bytes = new TextEncoder().encode(`${TEXT}\n`);
  assert.equal((await Survey.of(bytes)).fingerprint, survey.fingerprint);
  await assert.rejects(Survey.of(Uint8Array.of(0xef, 0xbb, 0xbf, ...bytes)), InvalidSurvey);
  await assert.rejects(Survey.of(Uint8Array.of(0xff, ...bytes)), InvalidSurvey);
});

test("every character of a survey matters", async () => {
  // One character changed: refused, or another survey; never the same one.
  for (let i = 0; i < TEXT.length; i++) {
    const changed = TEXT.slice(0, i) + (TEXT[i] === "1" ? "2" : "1") + TEXT.slice(i + 1);
    const inAbout = i < TEXT.indexOf('"promise"');
    const found = await Survey.of(changed).catch((problem) => problem);
    assert.ok(
      found instanceof InvalidSurvey ||
        found instanceof PrivacyViolation ||
        inAbout ||
        found.fingerprint !== survey.fingerprint,
    );
  }
});

test("an unknown value is not in the error", async () => {
  const canary = "a-value-that-nobody-may-see";
  const strict = await surveyOf("samples.json", "table");
  assert.throws(
    () => strict.privatize(canary),
    (problem) => {
      const shown = JSON.stringify([problem.message, problem.stack, { ...problem }]);
      return problem instanceof UnknownValue && !shown.includes(canary);
    },
  );
});

test("a position may be an object, as browsers hand it out", async () => {
  const load = casesOf("domains.json").find(
    ({ request }) => request.op === "load" && request.text.includes('"kind":"grid"'),
  );
  const grid = await Survey.of(load.request.text);
  const cell = casesOf("domains.json").find(({ request, answer }) => request.survey === grid.fingerprint && answer.ok);
  const [latitude, longitude] = cell.request.value;
  assert.equal(grid.symbol({ latitude, longitude, accuracy: 5 }), cell.answer.ok.symbol);
});

test("the label of a cell is its south-western corner, and lies in it", async () => {
  const load = casesOf("domains.json").find(
    ({ request }) => request.op === "load" && request.text.includes('"kind":"grid"'),
  );
  const grid = await Survey.of(load.request.text);
  const { domain } = JSON.parse(load.request.text).promise.context;
  assert.equal(grid.label(0), `${domain.south},${domain.west}`);
  for (const x of [0, 1, 7, grid.size - 2]) assert.equal(grid.symbol(grid.label(x).split(",").map(Number)), x);
});

test("symbols are checked", () => {
  for (const symbol of [-1, 7, 0.5, "0", NaN]) assert.throws(() => survey.reportFrom(symbol, [0n, 0n]), InvalidSymbols);
});

test("probabilities are the channel's, and add up", async () => {
  for (const about of [
    "plain, hadamard",
    "high-low, cyclic",
    "groups, tiers",
    "product, randomized",
    "union",
    "table",
  ]) {
    const one = await surveyOf("samples.json", about);
    for (let x = 0; x < one.size; x++) {
      const row = one.probabilities(x);
      assert.equal(row.length, one.outputs);
      assert.ok(Math.abs(row.reduce((sum, p) => sum + p) - 1) < 1e-12);
    }
  }
  const odds = e(Number(JSON.parse(TEXT).promise.context.epsilon));
  assert.ok(Math.abs(survey.probabilities(0)[0] - (2 * odds) / (8 * (odds + 1))) < 1e-12);
});

test("probabilities are what an enumeration of all words counts", async () => {
  for (const { about, request, answer } of casesOf("mechanisms.json")) {
    if (request.op !== "enumerate") continue;
    const load = casesOf("mechanisms.json").find(({ answer: { ok } }) => ok?.fingerprint === request.survey);
    const one = (enumerated[request.survey] ??= await Survey.of(load.request.text));
    const draws = 2 ** (one.mechanism.wordBits * one.mechanism.words);
    assert.deepEqual(
      one.probabilities(request.symbol),
      answer.ok.counts.map((count) => count / draws),
      about,
    );
  }
});
const enumerated = {};

// --- the promise --------------------------------------------------------------------------------------

test("e^ε is bounded from below, and closely", () => {
  const digits = 2718281828459045235360287471352662497757n; // e · 10^39, rounded down
  assert.ok(withinOdds(digits, 10n ** 39n, exactNumber("1")));
  assert.ok(!withinOdds(digits + 1n, 10n ** 39n, exactNumber("1")));
  assert.ok(withinOdds(5n, 5n, exactNumber("0")));
  assert.ok(!withinOdds(6n, 5n, exactNumber("0")));
  assert.ok(!withinOdds(1n, 0n, exactNumber("40")));
  assert.ok(withinOdds(1n, 0n, Infinity));
  // e^40 = 235385266837019985.40789…
  assert.ok(withinOdds(23538526683701998540789n, 100000n, exactNumber("40")));
  assert.ok(!withinOdds(23538526683701998540790n, 100000n, exactNumber("40")));
});

test("codes are proved by their odds, tables row by row, whatever their size", async () => {
  for (const { about, request } of casesOf("samples.json")) {
    if (request.op !== "load") continue;
    const { promise } = JSON.parse(request.text);
    const { mechanism, mechanism_context } = promise;
    const isOfCodes = !["table", "binary"].includes(mechanism.kind);
    const isForThis = mechanism_context === null || mechanism.kind === "plain";
    const { checked } = await Survey.of(request.text);
    assert.equal(checked, isOfCodes && isForThis ? "odds" : "whole", about);
  }
});

test("what the odds do not prove is compared, or refused where that is too much", async () => {
  const { request } = casesOf("bad_surveys.json").find(({ about }) => about.includes("8,192 reports"));
  const data = JSON.parse(request.text);
  await assert.rejects(Survey.of(request.text), PrivacyViolation);
  data.promise.context.epsilon = "3";
  const kept = await Survey.of(JSON.stringify(data));
  assert.deepEqual([kept.size, kept.outputs, kept.checked], [64, 8192, "whole"]);
  const codes = [2 ** 10, 2 ** 15].map((points) => randomizedCode(points, e(0.5)));
  const text = resolved(uniform(4, "3"), { kind: "product", codes }, blocks(2, 2, "1", "2"));
  await assert.rejects(Survey.of(text), (problem) => {
    return problem instanceof PrivacyViolation && problem.message.includes("too large to compare");
  });
});

test("a name is a line of text that can be seen", async () => {
  const load = (name) => {
    const data = JSON.parse(TEXT);
    data.promise.name = name;
    return Survey.of(JSON.stringify(data));
  };
  for (const name of ["x", "lunch 2026", "déjeuner, 東京", "\u{1f375}".repeat(100)])
    assert.equal((await load(name)).name, name);
  const inside = ["\t", "\n", "\u007f", "\u200b", "\u00a0", "\u2028"].map((character) => `a${character}b`);
  for (const bad of ["", " ", " x", "x ", "x".repeat(101), ...inside])
    await assert.rejects(load(bad), InvalidSurvey, JSON.stringify(bad));
});

test("a survey that breaks its promise says where", async () => {
  const bad = casesOf("bad_surveys.json").filter(({ answer }) => answer.error === "PrivacyViolation");
  assert.ok(bad.length > 10);
  for (const { request } of bad) {
    const problem = await Survey.of(request.text).catch((found) => found);
    assert.ok(problem instanceof PrivacyViolation);
    assert.ok(problem.x >= 0 && problem.x2 >= 0 && problem.x !== problem.x2 && problem.output >= 0);
  }
});

test("large surveys with codes that break their promise are refused", async () => {
  for (const about of ["large, hadamard", "large, cyclic", "large, blocks on a grid", "large, high-low"]) {
    const data = JSON.parse(surveyText("samples.json", about));
    const { context } = data.promise;
    // The same integers under a promise that is a little stronger.
    context.epsilon = (Number(context.epsilon) * 0.999).toFixed(6).replace(/0+$/, "");
    await assert.rejects(Survey.of(JSON.stringify(data)), PrivacyViolation, about);
  }
});

/** What a survey was checked for, or the name of what was wrong with it. */
const verdictOf = (text) =>
  Survey.of(text).then(
    ({ checked }) => checked,
    ({ name }) => name,
  );

test("each promise of a group response is looked at", async () => {
  const verdict = async (levels) => {
    const text = resolved(blocks(2, 40, "3", "2"), groupsOfTwo(40, levels));
    return verdictOf(text);
  };
  const kept = { high: 0.99 * e(2), low: e(-1), cover: 1n };
  assert.equal(await verdict(kept), "odds");
  assert.equal(await verdict({ ...kept, low: 0.9 * e(-1) }), "PrivacyViolation"); // inside a group
  assert.equal(await verdict({ ...kept, high: 1.01 * e(2), low: 0.5 }), "PrivacyViolation"); // for a group, against others
  assert.equal(await verdict({ high: 2, low: 0.1, cover: 1n }), "PrivacyViolation"); // against a group, on its own reports
});

test("a group response needs a context of groups", async () => {
  const free = { kind: "groups", codes: [], levels: [], code_of_group: [], clear: String(2n ** 64n), word_bits: 64 };
  const tier = { ...uniform(2, "inf"), kind: "tiers", epsilons: ["inf"], tier_of: packed([0, 0]) };
  delete tier.epsilon;
  assert.equal(await verdictOf(resolved(tier, free)), "odds");
  assert.equal(await verdictOf(resolved(uniform(2, "inf"), free)), "InvalidSurvey");
  assert.equal(await verdictOf(resolved(uniform(1, "1"), free)), "InvalidSurvey");
});

test("both promises of a product are looked at", async () => {
  const verdict = async (aboutBlock, aboutSymbol) => {
    const codes = [randomizedCode(4, e(aboutBlock)), randomizedCode(100, e(aboutSymbol))];
    const text = resolved(blocks(25, 4, "0.3", "0.6"), { kind: "product", codes });
    return verdictOf(text);
  };
  assert.equal(await verdict(0.2999, 0.2999), "odds");
  assert.equal(await verdict(0.3011, 0.2999), "PrivacyViolation");
  assert.equal(await verdict(0.2, 0.3001), "PrivacyViolation");
});

test("a plain response is proved for another context by its odds, all else by its rows", async () => {
  const plain = { kind: "plain", codes: [randomizedCode(100, e(0.9999))], code_of_block: [0] };
  const verdict = async (context, mechanism, made_for) => {
    return verdictOf(resolved(context, mechanism, made_for));
  };
  assert.equal(await verdict(blocks(25, 4, "1", "2"), plain, uniform(100, "1")), "odds");
  assert.equal(await verdict(blocks(25, 4, "0.9", "2"), plain, uniform(100, "1")), "PrivacyViolation");
  assert.equal(await verdict(blocks(25, 4, "1", "0.9"), plain, uniform(100, "1")), "PrivacyViolation");
  // Alone in its block, a symbol has nobody to hide from there.
  assert.equal(await verdict(blocks(1, 100, "0.5", "1"), plain, uniform(100, "1")), "odds");
  const groups = groupsOfTwo(40, { high: 0.99 * e(2), low: e(-1), cover: 1n });
  assert.equal(await verdict(blocks(2, 40, "4", "2"), groups, blocks(2, 40, "3", "2")), "whole");
  assert.equal(await verdict(blocks(2, 40, "2.9", "2"), groups, blocks(2, 40, "3", "2")), "PrivacyViolation");
  assert.equal(await verdict(blocks(2, 40, "4", "1.9"), groups, blocks(2, 40, "3", "2")), "PrivacyViolation");
});

// --- the pin comes first ------------------------------------------------------------------------------

/** Small documents that ask for memory by the gigabyte. */
const GREEDY = {
  "high-low over 10^8": resolved({ ...uniform(1e8, "1"), kind: "high-low", sensitive: packed([1, 2]) }, { kind: "x" }),
  "high-low over 2^31": resolved(
    { ...uniform(2 ** 31, "1"), kind: "high-low", sensitive: packed([1, 2]) },
    { kind: "high-low", codes: [randomizedCode(2, 2)] },
  ),
  "a circle of 2^31": resolved(uniform(2, "1"), {
    kind: "plain",
    codes: [cyclicCode(2 ** 31)],
    code_of_block: [0],
  }),
};

/** Odds of 2 to 1, around a circle. */
function cyclicCode(points) {
  return { ...evenCode(points), kind: "cyclic", base: packed([0]), base_blocks: 1 };
}

for (const [about, text] of Object.entries(GREEDY)) {
  test(`a small document that asks for much memory is refused at once: ${about}`, async () => {
    assert.ok(text.length < 1000);
    await assert.rejects(Survey.of(text, { fingerprint: survey.fingerprint }), WrongSurvey);
    await assert.rejects(Survey.of(text), InvalidSurvey);
  });
}

test("surveys are read up to the largest size that there is", async () => {
  const plain = (code) => ({ kind: "plain", codes: [code], code_of_block: [0] });
  const huge = await Survey.of(resolved(uniform(2 ** 26, "1"), plain(evenCode(2 ** 26))));
  assert.deepEqual([huge.size, huge.checked], [2 ** 26, "odds"]);
  await assert.rejects(Survey.of(resolved(uniform(2 ** 27, "1"), plain(evenCode(2 ** 27)))), InvalidSurvey);
  const circle = await Survey.of(resolved(uniform(2 ** 16, "1"), plain(cyclicCode(2 ** 16))));
  assert.deepEqual([circle.outputs, circle.checked], [2 ** 16, "odds"]);
  // The limit is on symbols that need memory each.
  const sensitive = { ...uniform(2 ** 20, "1"), kind: "high-low", sensitive: packed([1, 2]) };
  const highLow = await Survey.of(resolved(sensitive, { kind: "high-low", codes: [randomizedCode(2, 2)] }));
  assert.equal(highLow.size, 2 ** 20);
});

test("first the text, then the pin, then the form, then the promise", async () => {
  const pin = { fingerprint: survey.fingerprint };
  const named = (text) => Survey.of(text, pin).catch(({ name }) => name);
  assert.equal(await named("{"), "InvalidSurvey");
  assert.equal(await named(` ${TEXT}`), "InvalidSurvey");
  assert.equal(await named('{"about":{}}'), "InvalidSurvey");
  assert.equal(await named('{"promise":{}}'), "WrongSurvey");
  const unknown = JSON.parse(TEXT);
  unknown.promise.mechanism.kind = "wishful";
  assert.equal(await named(JSON.stringify(unknown)), "WrongSurvey");
  const broken = casesOf("bad_surveys.json").find(({ answer }) => answer.error === "PrivacyViolation").request.text;
  assert.equal(await named(broken), "WrongSurvey");
  // The pinned promise with something wrong around it.
  assert.equal(await named(JSON.stringify({ ...JSON.parse(TEXT), zzz: 1 })), "InvalidSurvey");
});

// --- what is left open --------------------------------------------------------------------------------

test("a survey says what it leaves open, and which labels it sends as they are", async () => {
  const domain = { kind: "labels", labels: ["park", "clinic", "bar", "school"], other: null };
  const opened = (record) => {
    const context = contextOf({ ...record, domain });
    const mechanism = { outputs: 4 };
    const made = new Survey({ name: "x", repeat: "once" }, { title: "" }, context, mechanism, "", "whole");
    const { labels, count } = made.unprotected();
    assert.equal(count, labels.length);
    return [made.leavesOpen, labels];
  };
  const all = domain.labels;
  assert.deepEqual(opened({ kind: "uniform", epsilon: "1" }), [false, []]);
  assert.deepEqual(opened({ kind: "uniform", epsilon: "inf" }), [true, all]);
  assert.deepEqual(opened({ kind: "high-low", epsilon: "1", sensitive: packed([1, 2]) }), [true, ["park", "school"]]);
  assert.deepEqual(opened({ kind: "high-low", epsilon: "1", sensitive: packed([0, 1, 2, 3]) }), [false, []]);
  assert.deepEqual(opened({ kind: "blocks", epsilon: "1", block_of: packed([0, 0, 1, 1]) }), [true, []]);
  assert.deepEqual(opened({ kind: "blocks", epsilon: "1", block_of: packed([0, 0, 1, 0]) }), [true, ["bar"]]);
  assert.deepEqual(opened({ kind: "blocks", epsilon: "1", across: "2", block_of: packed([0, 0, 1, 0]) }), [false, []]);
  assert.deepEqual(opened({ kind: "tiers", epsilons: ["1", "inf"], tier_of: packed([0, 1, 0, 0]) }), [true, ["clinic"]]);
  const matrix = [
    ["0", "1", "inf", "1"],
    ["1", "0", "1", "1"],
    ["inf", "inf", "0", "inf"],
    ["1", "1", "1", "0"],
  ];
  assert.deepEqual(opened({ kind: "matrix", matrix }), [true, ["bar"]]);
  const part = (size, epsilon) => ({ kind: "uniform", domain: { kind: "range", size, start: 0 }, epsilon });
  const union = { kind: "union", parts: [part(2, "1"), part(2, "inf")], block_of: packed([0, 1, 0, 1]) };
  assert.deepEqual(opened(union), [true, ["clinic", "school"]]);
});

/** A survey over these labels with any context, and a table that keeps any promise. */
async function open(labels, record) {
  const rows = labels.map(() => [String(2n ** 63n), String(2n ** 63n)]);
  const domain = { kind: "labels", labels, other: null };
  return Survey.of(resolved({ ...record, domain }, { kind: "table", rows, word_bits: 64 }));
}

const GROUP = "A report may show which group of answers yours belongs to.";

/** Without the marks that isolate labels. */
const plainText = (text) => text.replace(/[\u2068\u2069]/g, "");

test("the disclosure says everything that is open, in whole sentences", async () => {
  const labels = ["park", "clinic", "bar", "school"];
  const said = async (record) => plainText((await open(labels, record)).disclosure);
  assert.equal(await said({ kind: "uniform", epsilon: "1" }), "");
  assert.equal(await said({ kind: "uniform", epsilon: "inf" }), "Every answer is sent as it is.");
  const blocksOf = (...of) => ({ kind: "blocks", epsilon: "1", block_of: packed(of) });
  assert.equal(await said(blocksOf(0, 0, 1, 1)), GROUP);
  // One label is open, and the group of the others is visible as well.
  assert.equal(await said(blocksOf(0, 0, 1, 0)), `These answers are sent as they are: bar. ${GROUP}`);
  const sensitive = { kind: "high-low", epsilon: "1", sensitive: packed([1, 2]) };
  assert.equal(await said(sensitive), "These answers are sent as they are: park, school.");
  const tiers = { kind: "tiers", epsilons: ["1", "inf"], tier_of: packed([0, 1, 0, 0]) };
  assert.equal(await said(tiers), "These answers are sent as they are: clinic.");
  const matrixOf = (...rows) => ({ kind: "matrix", matrix: rows });
  const oneOpen = [["0", "inf", "inf", "inf"], ["1", "0", "1", "1"], ["1", "1", "0", "1"], ["1", "1", "1", "0"]];
  assert.equal(await said(matrixOf(...oneOpen)), "These answers are sent as they are: park.");
  const mixed = [["0", "1", "inf", "1"], ...oneOpen.slice(1)];
  assert.equal(await said(matrixOf(...mixed)), GROUP);
});

test("the disclosure escapes control characters of labels", async () => {
  const labels = ["park\x1b[8m", "clinic", "\u202ebar"];
  const { disclosure } = await open(labels, { kind: "high-low", epsilon: "1", sensitive: packed([1]) });
  assert.equal(plainText(disclosure), "These answers are sent as they are: park\\x1b[8m, \\u202ebar.");
});

test("the disclosure isolates labels, and lists thirty of many", async () => {
  const labels = Array.from({ length: 1300 }, (_, x) => `label ${x}`);
  const sensitive = (...symbols) => ({ kind: "high-low", epsilon: "1", sensitive: packed(symbols) });
  const many = await open(labels, sensitive(0));
  const listed = labels.slice(1, 31).join(", ");
  assert.equal(plainText(many.disclosure), `These answers are sent as they are: ${listed} and 1,269 more.`);
  assert.ok(many.disclosure.includes("\u2068label 1\u2069, \u2068label 2\u2069"));
  const thirty = await open(labels.slice(0, 31), sensitive(0));
  assert.equal(plainText(thirty.disclosure), `These answers are sent as they are: ${listed}.`);
});

test("what is unprotected is counted, and listed up to a limit", async () => {
  const size = 2 ** 26;
  const clear = { kind: "plain", codes: [clearCode(size)], code_of_block: [0] };
  const all = await Survey.of(resolved(uniform(size, "inf"), clear));
  const first = (count) => Array.from({ length: count }, (_, x) => x);
  assert.deepEqual(all.unprotected(), { labels: first(30), count: size });
  assert.deepEqual(all.unprotected(2), { labels: first(2), count: size });
  assert.equal(all.disclosure, "Every answer is sent as it is.");
  const some = await open(["a", "b", "c", "d"], { kind: "high-low", epsilon: "1", sensitive: packed([1]) });
  assert.deepEqual(some.unprotected(2), { labels: ["a", "c"], count: 3 });
  assert.deepEqual(some.unprotected(0), { labels: [], count: 3 });
  assert.deepEqual(survey.unprotected(), { labels: [], count: 0 });
});

test("contexts of every kind say what they promise", () => {
  const domain = { kind: "labels", labels: ["a", "b", "c"], other: null };
  const read = (record) => {
    const context = contextOf({ ...record, domain });
    const shown = (epsilon) => (epsilon === Infinity ? "inf" : Number(epsilon.p) / Number(epsilon.q));
    return [0, 1, 2].map((x) => [0, 1, 2].map((x2) => (x === x2 ? 0 : shown(context.epsilon(x, x2)))));
  };
  const u32 = (...numbers) => packed(numbers);
  assert.deepEqual(read({ kind: "uniform", epsilon: "0.5" }), [
    [0, 0.5, 0.5],
    [0.5, 0, 0.5],
    [0.5, 0.5, 0],
  ]);
  assert.deepEqual(read({ kind: "high-low", epsilon: "1", sensitive: u32(1) }), [
    [0, "inf", "inf"],
    [1, 0, 1],
    ["inf", "inf", 0],
  ]);
  assert.deepEqual(read({ kind: "blocks", epsilon: "1", block_of: u32(0, 1, 0) }), [
    [0, "inf", 1],
    ["inf", 0, "inf"],
    [1, "inf", 0],
  ]);
  assert.deepEqual(read({ kind: "blocks", epsilons: ["1", "2"], across: "3", block_of: u32(0, 1, 0) }), [
    [0, 3, 1],
    [3, 0, 3],
    [1, 3, 0],
  ]);
  assert.deepEqual(read({ kind: "tiers", epsilons: ["1", "inf"], tier_of: u32(0, 1, 1) }), [
    [0, 1, 1],
    ["inf", 0, "inf"],
    ["inf", "inf", 0],
  ]);
  const distances = [
    ["0", "1", "inf"],
    ["1", "0", "0"],
    ["inf", "0", "0"],
  ];
  assert.deepEqual(read({ kind: "metric", epsilon: "2", distances }), [
    [0, 2, "inf"],
    [2, 0, 0],
    ["inf", 0, 0],
  ]);
  assert.deepEqual(
    read({
      kind: "matrix",
      matrix: [
        ["0", "1/3", "2"],
        ["inf", "0", "1"],
        ["1", "1", "0"],
      ],
    })[0],
    [0, 1 / 3, 2],
  );
  const part = (size, epsilon) => ({ kind: "uniform", domain: { kind: "range", size, start: 0 }, epsilon });
  const union = { kind: "union", parts: [part(2, "1"), part(1, "2")], block_of: u32(0, 1, 0) };
  assert.deepEqual(read(union), [
    [0, "inf", 1],
    ["inf", 0, "inf"],
    [1, "inf", 0],
  ]);
});
