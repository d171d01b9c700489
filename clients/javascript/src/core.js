/** The client as a small core, which loads a module when a survey needs it: see README.md. */
import { installBy } from "./kinds.js";
import { load } from "./load.js";

installBy(load);

export * from "./api.js";
