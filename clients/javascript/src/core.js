/** The client in a small core, which loads modules from beside itself when a survey needs them: see README.md. */
import { installBy } from "./kinds.js";
import { load } from "./load.js";

installBy(load);

export * from "./api.js";
