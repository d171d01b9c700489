/**
 * HTTP requests to an aggregator, with retries where retrying is safe.
 *
 * A batch has an identifier that its sender chose, so it is safe to send the same bytes again: the aggregator counts
 * them once. Lost connections, timeouts and the statuses of an aggregator that is busy or down are retried with
 * growing pauses. The pauses are randomised so that many clients do not come back all at once. Every other reply is
 * final.
 */
import { InvalidBatch, NotDelivered, ReportRejected, WrongSurvey } from "./errors.js";
import { freshWords } from "./words.js";

const RETRY_STATUSES = [408, 429, 500, 502, 503, 504, 507];
const WAITS = "the report waits; you may retry";
const UNKNOWN = "the aggregator has no such survey; check the URL and the fingerprint";
const CONFLICT = "urn:sfumato:problem:batch-conflict";
const [FIRST_PAUSE, MAX_PAUSE, TIMEOUT] = [500, 30_000, 30_000]; // milliseconds
// Send no cookies and no referrer, and follow no redirect.
const POLITE = { credentials: "omit", referrerPolicy: "no-referrer", redirect: "error", cache: "no-store" };

/** Return the address of a survey. */
export function surveyAddress(url, fingerprint) {
  if (!/^https?:[^?#]*$/.test(url))
    throw new NotDelivered("the URL must start with https: or http: and contain no ? or #");
  return `${url.replace(/\/+$/, "")}/v1/surveys/${fingerprint}`;
}

/** Return the address that accepts batches of a survey. */
export const batchAddress = (url, fingerprint) => `${surveyAddress(url, fingerprint)}/batches`;

/** Return the request that posts a batch. `keepalive` lets it outlive the page. */
export function postRequest(body) {
  return { ...POLITE, method: "POST", headers: { "Content-Type": "application/json" }, body, keepalive: true };
}

/** Fetch the bytes at an address. */
export async function fetchBytes(address, fetch) {
  let answer;
  try {
    answer = await fetch(address, { ...POLITE, signal: AbortSignal.timeout(2 * TIMEOUT) });
    if (answer.ok) return new Uint8Array(await answer.arrayBuffer());
  } catch {
    throw new NotDelivered("the aggregator cannot be reached");
  }
  if (answer.status === 404) throw new WrongSurvey(UNKNOWN);
  throw new NotDelivered(`the aggregator returned status ${answer.status}`);
}

/**
 * Send a batch until the aggregator has counted it, or another answer of this device.
 *
 * `NotDelivered` after `patience` milliseconds without a valid reply: you may send it again.
 */
export async function deliver(address, request, { fetch, sleep, now, patience }) {
  const deadline = now() + patience;
  for (let tries = 0; ; tries++) {
    const [problem, retryAfter] = await attempt(address, request, fetch);
    if (!problem) return;
    const wait = Math.max(retryAfter, backoff(tries));
    if (now() + wait > deadline) throw new NotDelivered(`${WAITS}: ${problem}`);
    await sleep(wait);
  }
}

/** Send a batch once. Returns an empty list on success, else the problem and the time to wait. */
async function attempt(address, { batch, body, survey }, fetch) {
  let [answer, content] = [];
  try {
    answer = await fetch(address, { ...postRequest(body), signal: AbortSignal.timeout(TIMEOUT) });
    content = Object(await answer.json().catch(() => null));
  } catch {
    return ["the aggregator cannot be reached", 0];
  }
  const { status } = answer;
  if (status === 409 && content.type === CONFLICT) return []; // an older answer of this device stands
  if (!answer.ok && !RETRY_STATUSES.includes(status)) throw rejection(status, content);
  const isReceipt = content.batch === batch && content.survey === survey && content.reports === 1;
  // Any server can return status 200: the log-in page of a hotel, say.
  if (answer.ok && isReceipt) return [];
  const later = answer.headers.get("Retry-After"); // seconds, or a date
  return [`the aggregator returned status ${status}`, 1000 * later || Date.parse(later) - Date.now() || 0];
}

/** Return the error for a status that retrying would not change. It repeats nothing of the reply. */
function rejection(status, content) {
  if (status === 422)
    return new ReportRejected("the aggregator rejected the report", { index: Number(content.index) || 0 });
  if (status === 404) return new WrongSurvey(UNKNOWN);
  if (status === 410) return new WrongSurvey("this survey is closed; nothing was counted");
  if ([400, 409, 413, 415].includes(status))
    return new InvalidBatch(`the aggregator refuses this batch (${status})`);
  const problem = status === 403 ? "accepts no answers yet" : `returned status ${status}`;
  return new NotDelivered(`${WAITS}: the aggregator ${problem}`);
}

/** Return a random pause: between half and all of 0.5, 1, 2, … seconds, at most 30. */
function backoff(tries) {
  let chance = 1;
  try {
    chance = Number(freshWords(2)[0]) / 2 ** 64;
  } catch {} // harmless: the report is randomised already
  return (Math.min(FIRST_PAUSE * 2 ** tries, MAX_PAUSE) * (1 + chance)) / 2;
}
