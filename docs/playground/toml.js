/** The survey file that the command takes: `sfumato verify survey.toml`. It names no mechanism: the software chooses. */

export function tomlOf(name, promise) {
  const { labels } = promise;
  const domain = ["[domain]", 'kind = "labels"', `labels = [${labels.map(text).join(", ")}]`];
  return [`name = ${text(name)}`, "edition = 2", "", ...domain, "", ...contextLines(promise), ""].join("\n");
}

function contextLines({ kind, labels, of, names, epsilons, across }) {
  const head = ["[context]", `kind = ${text(kind)}`];
  const groups = (field) => ["", `[context.${field}]`, ...labels.map((label, x) => `${text(label)} = ${text(names[of[x]])}`)];
  if (kind === "uniform") return [...head, `epsilon = ${epsilons[0]}`];
  if (kind === "high-low") {
    const sensitive = labels.filter((_, x) => epsilons[of[x]] !== "inf");
    const epsilon = epsilons.find((owed) => owed !== "inf");
    return [...head, `epsilon = ${epsilon}`, `sensitive = [${sensitive.map(text).join(", ")}]`];
  }
  if (kind === "blocks") {
    const between = across === "inf" ? [] : [`across = ${across}`];
    return [...head, `epsilon = ${epsilons[0]}`, ...between, ...groups("block_of")];
  }
  const owed = names.map((tier, g) => `${text(tier)} = ${epsilons[g] === "inf" ? '"inf"' : epsilons[g]}`);
  return [...head, ...groups("tier_of"), "", "[context.epsilons]", ...owed];
}

/** A basic string; the escapes of JSON are among those of TOML. */
const text = (value) => JSON.stringify(value);
