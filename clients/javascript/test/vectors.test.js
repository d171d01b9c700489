/** Every vector, in order; and planted faults, which the vectors must notice. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { isDeepStrictEqual } from "node:util";
import { answerer } from "../conformance.js";
import { Survey } from "../src/index.js";
import { casesOf, FILES, surveyText } from "./support/vectors.js";

for (const file of FILES) {
  test(`vectors of ${file}`, async () => {
    const answer = answerer();
    for (const { about, request, answer: right } of casesOf(file)) {
      const { reason, ...found } = await answer(request); // reasons are in each client's own words
      assert.deepEqual(found, right, `${about}: ${JSON.stringify(request).slice(0, 300)}`);
    }
  });
}

test("there are vectors of every kind", () => {
  const wanted = ["bad_surveys", "batches", "canonical", "domains", "mechanisms", "memory", "samples"];
  assert.deepEqual(
    wanted.filter((name) => !FILES.includes(`${name}.json`)),
    [],
  );
});

const FAULTS = {
  "the highest bit of every word": (respond, last) => (x, word, word2) => respond(x, word ^ ((last + 1n) / 2n), word2),
  "the next word": (respond, last) => (x, word, word2) => respond(x, word === last ? 0n : word + 1n, word2),
  "the first and the last word exchanged": (respond, last) => (x, word, word2) => {
    return respond(x, word === 0n ? last : word === last ? 0n : word, word2);
  },
};

for (const [name, plant] of Object.entries(FAULTS)) {
  test(`a planted fault is noticed: ${name}`, async () => {
    const unnoticed = [];
    const loads = casesOf("mechanisms.json").filter(({ request }) => request.op === "load");
    for (const { about, request } of loads) {
      if (await survives(request, plant)) unnoticed.push(about);
    }
    // Without noise a report does not depend on the word.
    const clear = unnoticed.filter((about) => /clear|one symbol|none/.test(about));
    assert.deepEqual(unnoticed, clear);
    assert.ok(loads.length - clear.length > 40);
  });
}

/** Whether a faulty client passes all vectors of a survey. */
async function survives({ text, fingerprint }, plant) {
  const answer = answerer(({ mechanism }) => {
    mechanism.respond = plant(mechanism.respond, (1n << BigInt(mechanism.wordBits)) - 1n);
  });
  await answer({ op: "load", text, fingerprint });
  for (const { request, answer: right } of casesOf("mechanisms.json")) {
    if (request.survey === fingerprint && !isDeepStrictEqual(await answer(request), right)) return false;
  }
  return true;
}

test("one bit of a threshold is noticed", async () => {
  for (const about of [
    "plain, hadamard, 12 bits",
    "plain, randomized, 12 bits",
    "table, 12 bits",
    "binary, even, 12 bits",
  ]) {
    const text = surveyText("mechanisms.json", about);
    const data = JSON.parse(text);
    weaken(data.promise.mechanism);
    const [right, wrong] = await Promise.all([text, JSON.stringify(data)].map(enumerated));
    assert.notDeepEqual(wrong, right, about);
  }
});

/** Move a threshold by the least that keeps words adding up, towards privacy so that the survey still loads. */
function weaken(mechanism) {
  const move = (holder, field, by) => (holder[field] = String(BigInt(holder[field]) + by));
  if (mechanism.rows) {
    const [row] = mechanism.rows;
    const largest = row.indexOf(row.reduce((a, b) => (BigInt(a) > BigInt(b) ? a : b)));
    move(row, largest, -1n);
    move(row, largest ? 0 : 1, 1n);
    return;
  }
  const [code] = mechanism.codes;
  const step = code.kind === "hadamard" ? 2n : 1n;
  move(code, "high", -step);
  move(code, code.kind === "hadamard" ? "low" : "leftover", step);
}

async function enumerated(text) {
  const survey = await Survey.of(text);
  const answer = answerer();
  const { ok } = await answer({ op: "load", text, fingerprint: survey.fingerprint });
  const symbols = Array.from({ length: ok.inputs }, (_, symbol) => symbol);
  return Promise.all(symbols.map((symbol) => answer({ op: "enumerate", survey: ok.fingerprint, symbol })));
}
