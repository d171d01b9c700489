/** The playground's own survey, as the resolved JSON that devices read: the promise, and a table that keeps it. */
import { canonicalText } from "./client/canonical.js";

const ABOUT = { title: "", text: "", contact: "", minimum_reports: 0, opens: "", closes: "" };

export function resolvedText(name, promise, rows) {
  const mechanism = { kind: "table", word_bits: 64, rows };
  const context = contextRecord(promise);
  return canonicalText({ about: ABOUT, promise: { format: 1, name, context, mechanism, mechanism_context: null, repeat: "once" } });
}

function contextRecord({ kind, labels, of, epsilons, across }) {
  const domain = { kind: "labels", labels, other: null };
  if (kind === "uniform") return { kind, domain, epsilon: epsilons[0] };
  if (kind === "high-low") {
    const sensitive = [...labels.keys()].filter((x) => epsilons[of[x]] !== "inf");
    return { kind, domain, epsilon: epsilons.find((owed) => owed !== "inf"), sensitive: packedU32(sensitive) };
  }
  if (kind === "tiers") return { kind, domain, epsilons, tier_of: packedU32(of) };
  const between = across === "inf" ? {} : { across };
  return { kind, domain, epsilon: epsilons[0], ...between, block_of: packedU32(of) };
}

/** Base64 of little-endian 32-bit words. */
function packedU32(numbers) {
  const view = new DataView(new ArrayBuffer(4 * numbers.length));
  numbers.forEach((number, i) => view.setUint32(4 * i, number, true));
  return btoa(String.fromCharCode(...new Uint8Array(view.buffer)));
}
