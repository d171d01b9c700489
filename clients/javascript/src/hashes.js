/** The modules that this core loads, by their hashes. Written by `npm run hashes`; do not edit. */
export const HASHES = {
  groups: "sha256-k5x/zAjMRLvltmHQ6pINrhKeBSeicItVjAiXUaoBaYc=",
  places: "sha256-JbjKMUe5ljTZEnkxeDBx1akzrfyM2iESXCNzm5mSmo0=",
  products: "sha256-UnVJpoLkMOQUSWM0IPto7ZWTkwSmBfrMzBjyeIe2dVQ=",
  tables: "sha256-KFc7wQIKY+IqhAhxD7sNthuCySDkFUjtMx4dHQZ+Bqo=",
  unions: "sha256-r4x2UD1JAjqiIJJnbv1OraPkOOirwEUpoHty9NVgqu4=",
};
