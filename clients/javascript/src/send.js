/**
 * The way to an aggregator, and asking again where asking again is safe.
 *
 * A batch has an identifier that its sender made, so the same bytes may be sent as often as it takes: the aggregator
 * counts them once. Lost connections, time-outs and the statuses of an aggregator that is busy or down are tried again,
 * later and later, with some chance in it so that a crowd does not come back all at once. Everything else is final.
 */
import { InvalidBatch, NotDelivered, ReportRejected, WrongSurvey } from "./errors.js";
import { freshWords } from "./words.js";

const AGAIN = [408, 429, 502, 503, 504, 507];
const WAITS = "the report waits, and is safe to send again";
const UNKNOWN = "the aggregator does not know this survey; check URL and fingerprint";
const CONFLICT = "urn:sfumato:problem:batch-conflict";
const [FIRST_PAUSE, LONGEST_PAUSE, SILENCE] = [500, 30_000, 30_000]; // milliseconds
// Send no cookies and no referrer, and follow no redirect.
const POLITE = { credentials: "omit", referrerPolicy: "no-referrer", redirect: "error", cache: "no-store" };

/** Where an aggregator has a survey. */
export function surveyAddress(url, fingerprint) {
  if (!/^https?:[^?#]*$/.test(url))
    throw new NotDelivered("the URL must begin with https: or http:, without ? and #");
  return `${url.replace(/\/+$/, "")}/v1/surveys/${fingerprint}`;
}

/** Where it takes batches in. */
export const batchAddress = (url, fingerprint) => `${surveyAddress(url, fingerprint)}/batches`;

/** The request that posts a batch. `keepalive`: it outlives the page. */
export function postOf(body) {
  return { ...POLITE, method: "POST", headers: { "Content-Type": "application/json" }, body, keepalive: true };
}

/** The bytes at an address. */
export async function fetched(address, fetch) {
  let answer;
  try {
    answer = await fetch(address, { ...POLITE, signal: AbortSignal.timeout(2 * SILENCE) });
    if (answer.ok) return new Uint8Array(await answer.arrayBuffer());
  } catch {
    throw new NotDelivered("the aggregator cannot be reached");
  }
  if (answer.status === 404) throw new WrongSurvey(UNKNOWN);
  throw new NotDelivered(`the aggregator answered ${answer.status}`);
}

/**
 * Have a batch counted. Returns when the aggregator counted it, now or before, or has another answer of this device.
 *
 * `NotDelivered` once `patience` milliseconds are over without a good answer: it may be sent again.
 */
export async function deliver(address, request, { fetch, sleep, now, patience }) {
  const deadline = now() + patience;
  for (let tries = 0; ; tries++) {
    const [why, asked] = await delivery(address, request, fetch);
    if (!why) return;
    const wait = Math.max(asked, backoff(tries));
    if (now() + wait > deadline) throw new NotDelivered(`${WAITS}: ${why}`);
    await sleep(wait);
  }
}

/** One try: nothing if all is well, else why not and how long the aggregator asks one to wait. */
async function delivery(address, { batch, body, survey }, fetch) {
  let [answer, content] = [];
  try {
    answer = await fetch(address, { ...postOf(body), signal: AbortSignal.timeout(SILENCE) });
    content = Object(await answer.json().catch(() => null));
  } catch {
    return ["the aggregator cannot be reached", 0];
  }
  const { status } = answer;
  if (status === 409 && content.type === CONFLICT) return []; // an older answer of this device stands
  if (!answer.ok && !AGAIN.includes(status)) throw refusal(status, content);
  const receipt = content.batch === batch && content.survey === survey && content.reports === 1;
  // Anybody can answer 200: the log-in page of a hotel, say.
  if (answer.ok && receipt) return [];
  const later = answer.headers.get("Retry-After"); // seconds, or a date
  return [`the aggregator answered ${status}`, 1000 * later || Date.parse(later) - Date.now() || 0];
}

/** The error for a status that no further try would change. What was answered is not repeated in it. */
function refusal(status, content) {
  if (status === 422)
    return new ReportRejected("the aggregator refuses the report", { index: Number(content.index) || 0 });
  if (status === 404) return new WrongSurvey(UNKNOWN);
  if (status === 410) return new WrongSurvey("this survey is closed; nothing was counted");
  if ([400, 409, 413, 415].includes(status))
    return new InvalidBatch(`the aggregator does not take this for a batch (${status})`);
  return new NotDelivered(`${WAITS}: the aggregator ${status === 403 ? "takes no answers yet" : `answered ${status}`}`);
}

/** Between half of and all of 0.5, 1, 2, … seconds, at most 30; all of it where there is no chance to be had. */
function backoff(tries) {
  let chance = 1;
  try {
    chance = Number(freshWords(2)[0]) / 2 ** 64;
  } catch {} // the report was drawn before, and needs none
  return (Math.min(FIRST_PAUSE * 2 ** tries, LONGEST_PAUSE) * (1 + chance)) / 2;
}
