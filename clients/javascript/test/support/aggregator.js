/** An aggregator in a dictionary: the rules of the wire, a `fetch` that speaks to it, and faults on demand. */

export class Aggregator {
  url = "https://surveys.example.org/here";
  requests = [];
  batches = new Map();
  /** What happens to the next requests: "drop" it, "lose" the response, or a status; then all is well. */
  faults = [];
  headers = {};

  constructor(survey, text = "") {
    this.survey = survey;
    this.text = text;
    this.fetch = this.fetch.bind(this);
  }

  async fetch(url, request) {
    this.requests.push({ url, ...request });
    const fault = this.faults.shift();
    if (fault === "drop") throw new TypeError("fetch failed");
    if (typeof fault === "number")
      return answered(fault, { type: "about:blank", status: fault, index: 0 }, this.headers);
    const answer = request.method === "POST" ? this.counted(request.body) : answered(200, this.text);
    if (fault === "lose") throw new TypeError("fetch failed");
    return typeof fault === "function" ? fault() : answer;
  }

  counted(body) {
    const { batch, format, reports, survey } = JSON.parse(body);
    const before = this.batches.get(batch);
    if (before && before !== body) return answered(409, { type: "urn:sfumato:problem:batch-conflict" });
    this.batches.set(batch, body);
    return answered(before ? 200 : 201, { batch, reports: reports.length, survey: format === 1 ? survey : this.survey.fingerprint });
  }

  get reports() {
    return [...this.batches.values()].flatMap((body) => JSON.parse(body).reports);
  }
}

export function answered(status, content, headers = {}) {
  return new Response(typeof content === "string" ? content : JSON.stringify(content), { status, headers });
}

/** What a test's client gets: no waiting, and a clock that stands. */
export function seams(aggregator, more = {}) {
  return {
    url: aggregator.url,
    fetch: aggregator.fetch,
    sleep: async () => {},
    clock: () => Date.UTC(2026, 10, 15),
    ...more,
  };
}
