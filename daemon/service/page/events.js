// The daemon's events: a text stream that begins with the last ones.

import {request} from "./api.js";

const RETRY_MS = 2000;

/**
 * Listens until `signal` aborts, and resumes after the last event if the stream breaks. A hidden page does not listen.
 * @param {string} query  "camera=NAME&types=state,alarm"
 * @param {AbortSignal} signal
 * @param {(type: string, event: any, id: string) => void} take
 * @param {(problem: unknown) => void} tell  null: connected
 */
export function listen(query, signal, take, tell) {
  let last = "", busy = false;
  /** @type {AbortController | null} */
  let abort = null;
  /** @type {number | undefined} */
  let timer;
  async function turn() {
    clearTimeout(timer);
    if (busy || document.hidden || signal.aborted)
      return;
    busy = true;
    abort = new AbortController();
    try {
      const after = last ? `&after=${encodeURIComponent(last)}` : "";
      const response = await request(`api/v1/events?${query}${after}`, {signal: abort.signal});
      tell(null);
      await readLines(response, (type, text, id) => {
        last = id || last;
        take(type, JSON.parse(text), id);
      });
    } catch (error) {
      if (!abort.signal.aborted)
        tell(error);
    }
    busy = false;
    timer = window.setTimeout(turn, RETRY_MS);
  }
  function visibility() {
    if (document.hidden)
      abort?.abort();
    else
      turn();
  }
  document.addEventListener("visibilitychange", visibility);
  signal.addEventListener("abort", () => {
    document.removeEventListener("visibilitychange", visibility);
    clearTimeout(timer);
    abort?.abort();
  });
  turn();
}

/**
 * @param {Response} response
 * @param {(type: string, text: string, id: string) => void} take
 */
async function readLines(response, take) {
  const reader = /** @type {ReadableStream<Uint8Array>} */ (response.body).getReader(), decoder = new TextDecoder();
  let rest = "", type = "message", data = "", id = "";
  for (;;) {
    const {done, value} = await reader.read();
    if (done)
      return;
    const lines = (rest + decoder.decode(value, {stream: true})).split("\n");
    rest = /** @type {string} */ (lines.pop());
    for (const line of lines) {
      const colon = line.indexOf(":"), name = line.slice(0, colon), text = line.slice(colon + 1).replace(/^ /, "");
      if (line === "" && data)
        take(type, data, id);
      if (line === "")
        [type, data] = ["message", ""];
      else if (name === "event")
        type = text;
      else if (name === "data")
        data += text;
      else if (name === "id")
        id = text;
    }
  }
}
