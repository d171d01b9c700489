/**
 * HTTP requests to an aggregator, with retries where retrying is safe.
 *
 * A batch has an identifier that its sender chose, so the same bytes may be sent as often as it takes: the aggregator
 * counts them once. Lost connections, timeouts and the statuses of an aggregator that is busy or down are retried with
 * growing pauses. The pauses are randomised so that many clients do not come back all at once. Every other reply is final.
 */
import { InvalidBatch, NotDelivered, ReportRejected, WrongSurvey } from "./errors.js";
import { freshWords } from "./words.js";

const RETRY_STATUSES = [408, 429, 502, 503, 504, 507];
const WAITS = "the report waits, and it is safe to retry";
const UNKNOWN = "the aggregator does not know this survey; check URL and fingerprint";
const CONFLICT = "urn:sfumato:problem:batch-conflict";
const [FIRST_PAUSE, MAX_PAUSE, TIMEOUT] = [500, 30_000, 30_000]; // milliseconds
// Send no cookies and no referrer, and follow no redirect.
const POLITE = { credentials: "omit", referrerPolicy: "no-referrer", redirect: "error", cache: "no-store" };

/** The address of a survey. */
export function surveyAddress(url, fingerprint) {
  if (!/^https?:[^?#]*$/.test(url))
    throw new NotDelivered("the URL must start with https: or http: and contain no ? or #");
  return `${url.replace(/\/+$/, "")}/v1/surveys/${fingerprint}`;
}

/** The address that accepts batches of a survey. */
export const batchAddress = (url, fingerprint) => `${surveyAddress(url, fingerprint)}/batches`;

/** The request that posts a batch. `keepalive` lets it outlive the page. */
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
  throw new NotDelivered(`the aggregator answered ${answer.status}`);
}

/**
 * Send a batch until it is counted. Returns once the aggregator counted it, now or before, or has another answer of this
 * device.
 *
 * `NotDelivered` after `patience` milliseconds without a valid reply: you may send it again.
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

/** One attempt: an empty list on success, else the reason and how long the aggregator asks to wait. */
async function delivery(address, { batch, body, survey }, fetch) {
  let [answer, content] = [];
  try {
    answer = await fetch(address, { ...postRequest(body), signal: AbortSignal.timeout(TIMEOUT) });
    content = Object(await answer.json().catch(() => null));
  } catch {
    return ["the aggregator cannot be reached", 0];
  }
  const { status } = answer;
  if (status === 409 && content.type === CONFLICT) return []; // an older answer of this device stands
  if (!answer.ok && !RETRY_STATUSES.includes(status)) throw refusal(status, content);
  const receipt = content.batch === batch && content.survey === survey && content.reports === 1;
  // Any server can answer 200: a hotel's log-in page, say.
  if (answer.ok && receipt) return [];
  const later = answer.headers.get("Retry-After"); // seconds, or a date
  return [`the aggregator answered ${status}`, 1000 * later || Date.parse(later) - Date.now() || 0];
}

/** The error for a status that no retry would change. It repeats nothing of the reply. */
function refusal(status, content) {
  if (status === 422)
    return new ReportRejected("the aggregator rejected the report", { index: Number(content.index) || 0 });
  if (status === 404) return new WrongSurvey(UNKNOWN);
  if (status === 410) return new WrongSurvey("this survey is closed; nothing was counted");
  if ([400, 409, 413, 415].includes(status))
    return new InvalidBatch(`the aggregator does not accept this as a batch (${status})`);
  return new NotDelivered(`${WAITS}: the aggregator ${status === 403 ? "accepts no answers yet" : `answered ${status}`}`);
}

/** Between half and all of 0.5, 1, 2, … seconds, at most 30; all of it without randomness. */
function backoff(tries) {
  let chance = 1;
  try {
    chance = Number(freshWords(2)[0]) / 2 ** 64;
  } catch {} // the report was randomised before
  return (Math.min(FIRST_PAUSE * 2 ** tries, MAX_PAUSE) * (1 + chance)) / 2;
}
