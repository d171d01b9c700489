/** The test vectors at the root of the repository, and the surveys in them. */
import { readdirSync, readFileSync } from "node:fs";
import { Survey } from "../../src/index.js";

const FOLDER = new URL("../../../../test-vectors/", import.meta.url);

export const FILES = readdirSync(FOLDER).filter((name) => name.endsWith(".json"));

export const casesOf = (file) => JSON.parse(readFileSync(new URL(file, FOLDER), "utf8"));

/** The text of a survey of the vectors, by what is said about it. */
export function surveyText(file, about) {
  return casesOf(file).find((one) => one.about === about && one.request.op === "load").request.text;
}

export const surveyOf = (file, about) => Survey.of(surveyText(file, about));
