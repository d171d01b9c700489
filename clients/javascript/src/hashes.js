/** The modules that this core loads, by their hashes. Written by `npm run hashes`; do not edit. */
export const HASHES = {
  groups: "sha256-pjI3z7mDwZgrg6QkJHmn7Q55HZ/GgYT4eeHkT89hKDY=",
  places: "sha256-JbjKMUe5ljTZEnkxeDBx1akzrfyM2iESXCNzm5mSmo0=",
  products: "sha256-UnVJpoLkMOQUSWM0IPto7ZWTkwSmBfrMzBjyeIe2dVQ=",
  tables: "sha256-VnFcKu3TIiyiSkpAf5XQXR6xTHhKvzuIRjyCIINThiw=",
  unions: "sha256-YWK4T+cIio6MlGXmzMivNbtEsXGdYJoQ8jaBlsTG1DA=",
};
