/** Elements, made without any HTML text: what people paste is only ever text. */

/** An element with attributes and children; `undefined` and `null` attributes are left out. */
export function element(tag, attributes = {}, ...children) {
  return dressed(document.createElement(tag), attributes, children);
}

/** The same in SVG. */
export function shape(tag, attributes = {}, ...children) {
  return dressed(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function dressed(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) if (value !== undefined && value !== null) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/** A select with these options, `[value, text]`; it keeps its choice if that is still there, and its focus. */
export function offer(select, options, wanted = select.value) {
  const known = [...select.options].map((option) => `${option.value}\n${option.text}`).join("\n\n");
  if (known !== options.map(([value, text]) => `${value}\n${text}`).join("\n\n")) {
    select.replaceChildren(...options.map(([value, text]) => element("option", { value }, text)));
  }
  select.value = options.some(([value]) => value === wanted) ? wanted : (options[0]?.[0] ?? "");
}

/** A label on one line, cut in the middle where it is too long: names that begin alike often end differently. */
export function short(label, longest = 24) {
  const letters = [...label];
  const tail = Math.floor(longest / 3);
  return letters.length <= longest ? label : `${letters.slice(0, longest - 1 - tail).join("").trimEnd()}…${letters.slice(-tail).join("").trimStart()}`;
}

/** A probability as a percentage with three digits. */
export function percent(probability) {
  if (probability === 0 || probability === 1) return `${100 * probability}%`;
  if (probability > 0.9995) return "over 99.9%";
  if (probability < 1e-5) return "under 0.001%";
  return `${Number((100 * probability).toPrecision(3))}%`;
}
