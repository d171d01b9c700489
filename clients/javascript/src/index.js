/** Context-aware local differential privacy on the device: see README.md. */
export { Client } from "./client.js";
export * from "./errors.js";
export { Survey } from "./survey.js";
