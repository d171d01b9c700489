/** The complete client, with all modules: see README.md. */
import { install } from "./kinds.js";
import groups from "./modules/groups.js";
import places from "./modules/places.js";
import composites from "./modules/composites.js";
import tables from "./modules/tables.js";

install("groups", groups);
install("places", places);
install("composites", composites);
install("tables", tables);

export * from "./api.js";
