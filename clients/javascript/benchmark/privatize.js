/**
 * A million reports each, from fresh words: `node benchmark/privatize.js`. Prints seconds; the goal is below 2.
 *
 * The surveys are those of the test vectors: k = 43,750 by Hadamard response, k = 1,000 by a cyclic code.
 */
import { readFileSync } from "node:fs";
import { Survey } from "../src/index.js";
import { freshWords } from "../src/words.js";

const PEOPLE = 1_000_000;
const CHUNK = 2048; // people whose words are drawn in one go

const cases = JSON.parse(readFileSync(new URL("../../../test-vectors/samples.json", import.meta.url), "utf8"));

for (const about of ["large, hadamard", "large, cyclic"]) {
  const survey = await Survey.of(cases.find((one) => one.about === about && one.request.op === "load").request.text);
  const started = performance.now();
  let sum = 0;
  for (let start = 0; start < PEOPLE; start += CHUNK) {
    const words = freshWords(2 * CHUNK);
    for (let i = 0; i < Math.min(CHUNK, PEOPLE - start); i++) {
      sum += survey.reportFrom((start + i) % survey.size, [words[2 * i], words[2 * i + 1]]);
    }
  }
  const bulk = (performance.now() - started) / 1000;
  const again = performance.now();
  for (let i = 0; i < PEOPLE; i++) sum += survey.privatize(survey.label(i % survey.size));
  const single = (performance.now() - again) / 1000;
  console.log(
    `${about}: k = ${survey.size}, ${PEOPLE} reports: ${bulk.toFixed(2)} s from words in bulk, ` +
      `${single.toFixed(2)} s by privatize(), value after value (mean report ${(sum / PEOPLE / 2).toFixed(1)})`,
  );
}
