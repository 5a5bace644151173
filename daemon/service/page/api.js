// Requests to the daemon that serves this page. Paths are relative, so that a proxy can serve the page at any path.

/** An error response of the daemon, with its text. */
export class Refusal extends Error {
  /**
   * @param {number} status  0: no answer
   * @param {string} message
   */
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

const KEPT = "framed-token";
/** @type {Promise<string> | null} */
let asking = null;

/**
 * Asks the user for the token, once for all requests that wait for it.
 * @param {boolean} wrong  the previous token was wrong
 */
function askToken(wrong) {
  asking = asking ?? new Promise((given) => {
    const dialog = /** @type {HTMLDialogElement} */ (document.getElementById("ask"));
    const input = /** @type {HTMLInputElement} */ (document.getElementById("ask-token"));
    const why = /** @type {HTMLElement} */ (document.getElementById("ask-why"));
    why.textContent = wrong ? "The token was wrong." : "This daemon shows cameras only to whom it knows.";
    input.value = "";
    dialog.showModal();
    dialog.addEventListener("close", () => {
      sessionStorage.setItem(KEPT, input.value);
      asking = null;
      given(input.value);
    }, {once: true});
  });
  return asking;
}

/**
 * Returns a successful response; asks the user for a token if one is needed.
 * @param {string} path
 * @param {{method?: string, body?: any, signal?: AbortSignal}} [options]  body: sent as JSON
 * @returns {Promise<Response>}
 * @throws {Refusal}
 */
export async function request(path, options = {}) {
  const {method = "GET", body, signal} = options;
  for (;;) {
    if (asking)
      await asking;
    const token = sessionStorage.getItem(KEPT);
    /** @type {Object<string, string>} */
    const headers = token ? {Authorization: `Bearer ${token}`} : {};
    if (body !== undefined || method === "POST")
      headers["Content-Type"] = "application/json";
    const text = body === undefined ? (method === "POST" ? "{}" : undefined) : JSON.stringify(body);
    let response;
    try {
      response = await fetch(path, {method, headers, body: text, signal, cache: "no-store", credentials: "omit"});
    } catch (error) {
      if (signal?.aborted)
        throw error;
      throw new Refusal(0, "the daemon does not answer");
    }
    if (response.ok)
      return response;
    if (response.status !== 401)
      throw await refusalOf(response);
    if (token === sessionStorage.getItem(KEPT) && !asking)
      askToken(Boolean(token));
  }
}

/** @param {Response} response */
async function refusalOf(response) {
  const text = await response.text();
  let said = "";
  try {
    said = JSON.parse(text).error;
  } catch {
    said = response.headers.get("Content-Type")?.startsWith("text/plain") ? text.trim() : "";
  }
  return new Refusal(response.status, said || `the daemon answers ${response.status} ${response.statusText}`);
}

/**
 * @param {string} path
 * @param {AbortSignal} [signal]
 * @returns {Promise<any>}
 */
export async function getJson(path, signal) {
  return (await request(path, {signal})).json();
}

export const hasToken = () => sessionStorage.getItem(KEPT) !== null;

/**
 * @param {string} path
 * @param {any} [body]
 * @param {string} [method]
 * @returns {Promise<any>}
 */
export async function send(path, body, method = "POST") {
  const text = await (await request(path, {method, body})).text();
  return text ? JSON.parse(text) : null;
}

/**
 * Returns a sentence for the user.
 * @param {unknown} error
 */
export function explain(error) {
  if (!(error instanceof Refusal))
    return String(error);
  if (error.status === 403)
    return `Not allowed: ${error.message}.`;
  if (error.status === 404)
    return `This daemon has no such thing: ${error.message}.`;
  if (error.status === 503)
    return `Not now: ${error.message}.`;
  return `${error.message[0].toUpperCase()}${error.message.slice(1)}.`;
}

/** @param {...string} parts  of a path; this quotes them */
export function cameraPath(...parts) {
  return ["api/v1/cameras", ...parts.map(encodeURIComponent)].join("/");
}
