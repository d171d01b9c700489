/** The complete client, with all modules: see README.md. */
import { install } from "./kinds.js";
import groups from "./modules/groups.js";
import places from "./modules/places.js";
import products from "./modules/products.js";
import tables from "./modules/tables.js";
import unions from "./modules/unions.js";

install("groups", groups);
install("places", places);
install("products", products);
install("tables", tables);
install("unions", unions);

export * from "./api.js";
