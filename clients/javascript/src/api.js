/** The exports of both builds. */
export { Client } from "./client.js";
export * from "./errors.js";
export { DEFAULT_BUDGET } from "./ledger.js";
export { Survey } from "./survey.js";
