// Figures and states in words.

/** @typedef {import("./status.js").Brief} Brief */

/** Harmless losses: the configuration requests them, or nobody reads. */
export const WANTED_LOSSES = ["thinned", "still", "client"];

/**
 * Reasons of losses, in the words of framed-faults(7).
 * @type {Object<string, string>}
 */
export const REASONS = {
  thinned: "above the rate that fps allows",
  still: "nothing new in the picture (gate)",
  late: "older than max_age before anybody took it",
  damaged: "damaged by the network or beyond decoding",
  overflow: "clients left no free slot",
  client: "nobody is connected, or everybody left",
  sink: "the file or server could not be written to",
  config: "the output cannot be made from this picture",
  backend: "the device failed",
  backend_busy: "the device is too slow",
  stopping: "the daemon or the output stopped",
};

/** @type {Object<string, string>} */
const LEGS = {
  network: "not limited: the cameras deliver no more",
  cpu: "limited by the processors",
  decoder: "limited by decoding",
  upload: "limited by copies to the GPU",
  kernel: "limited by the kernels",
  download: "limited by copies from the GPU",
  client: "limited by slow clients",
};

/** @param {string} leg */
export function limit(leg) {
  return LEGS[leg] ?? leg;
}

/** @param {number | null | undefined} value */
export function rate(value) {
  return value === null || value === undefined ? "–" : value.toFixed(value < 9.95 ? 1 : 0);
}

/** @param {number | null | undefined} s */
export function duration(s) {
  if (s === null || s === undefined)
    return "–";
  if (s < 0.0995)
    return `${(s * 1000).toFixed(s < 0.00995 ? 1 : 0)} ms`;
  if (s < 90)
    return `${s.toFixed(s < 9.95 ? 1 : 0)} s`;
  if (s < 5400)
    return `${Math.round(s / 60)} min`;
  return s < 172800 ? `${Math.round(s / 3600)} h` : `${Math.round(s / 86400)} days`;
}

/** @param {number} n */
export function bytes(n) {
  if (n < 1 << 20)
    return `${Math.round(n / 1024)} KiB`;
  return n < 1 << 30 ? `${Math.round(n / (1 << 20))} MiB` : `${(n / (1 << 30)).toFixed(1)} GiB`;
}

/** @param {number} n  bits per second */
export function bitRate(n) {
  return n < 1e6 ? `${Math.round(n / 1e3)} kbit/s` : `${(n / 1e6).toFixed(1)} Mbit/s`;
}

/** @param {number} n */
export function count(n) {
  return n.toLocaleString("en");
}

/** @param {number} share  0 to 1 */
export function percent(share) {
  return `${Math.round(100 * share)} %`;
}

/** @param {number} ms  since 1970 */
export function clockTime(ms) {
  return new Date(ms).toLocaleTimeString("en-GB");
}

/** @param {{state: string, next_try_s?: number | null, alerts?: string[], output_error?: any}} camera */
export function health(camera) {
  const alerts = (camera.alerts ?? []).filter((alert) => alert !== "down"); // "down" stays for a while after it is over
  switch (camera.state) {
  case "running":
    if (alerts.length)
      return {level: "warn", words: `running, ${alerts.join(", ")}`};
    if (camera.output_error)
      return {level: "warn", words: "running, an output has a problem"};
    return {level: "good", words: "running"};
  case "retrying":
    return {level: "bad", words: camera.next_try_s ? `retrying in ${duration(camera.next_try_s)}` : "retrying"};
  case "failed":
    return {level: "bad", words: "failed"};
  case "connecting":
    return {level: "warn", words: "connecting"};
  default:
    return {level: "off", words: camera.state};
  }
}

/** @param {import("./status.js").Member} member */
export function memberWords({node, site, state, alone_s: alone, error}) {
  const verb = state === "in" ? "is in" : state === "joining" && alone === null ? "joins" : "is out of";
  return `${node} ${verb} the cluster ${site}${alone === null ? "" : `, alone for ${duration(alone)}`}${error ? `: ${error}` : ""}.`;
}

/**
 * @param {{name: string}} a
 * @param {{name: string}} b
 */
export function byName(a, b) {
  return a.name.localeCompare(b.name, "en", {numeric: true});
}

const ORDER = ["bad", "warn", "good", "off"];

/**
 * Problems first, then by name.
 * @param {Brief[]} cameras
 */
export function problemsFirst(cameras) {
  return [...cameras].sort((a, b) =>
    ORDER.indexOf(health(a).level) - ORDER.indexOf(health(b).level)
    || (b.damaged > 0 ? 1 : 0) - (a.damaged > 0 ? 1 : 0)
    || byName(a, b));
}

/**
 * "12 late, 3 overflow"
 * @param {Object<string, number>} lost
 */
export function lossWords(lost) {
  const parts = Object.entries(lost).filter(([, n]) => n > 0).sort((a, b) => b[1] - a[1]);
  return parts.map(([reason, n]) => `${count(n)} ${reason}`).join(", ") || "none";
}
