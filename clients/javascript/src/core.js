/** The client as a small core that loads modules when a survey needs them: see README.md. */
import { setLoader } from "./kinds.js";
import { load } from "./load.js";

setLoader(load);

export * from "./api.js";
