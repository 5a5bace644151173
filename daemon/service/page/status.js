// What the daemon does now, asked for each second while somebody looks.

import {getJson} from "./api.js";

/**
 * The parts of the daemon's status that this page shows; framed(1) has all.
 * @typedef {{text: string, age_s: number}} Problem
 * @typedef {{p50_s: number | null, p99_s: number | null}} Latency
 * @typedef {{name: string, behind: number, held: number, taken: number, missed: number}} Consumer
 * @typedef {{name: string, kernel: string, sink: string, open: boolean, protocol: string, clients: number, consumers: Consumer[],
 *     offered: number, emitted: number, lost: Object<string, number>, fps_out: number, fps_lost: number,
 *     latency: Latency, results: any, last_error: Problem | null}} Output
 * @typedef {{name: string, state: string, next_try_s: number | null, url: string, stream: string | null,
 *     codec: string | null, picture: {width: number, height: number} | null, decoder: string | null,
 *     backend: string | null, device: number | null, fps_in: number, pictures: number, decodes: string | null,
 *     skipped: number, converted: number, flagged: Object<string, number>, reconnects: number,
 *     thread: Object<string, number>, network: Object<string, any> | null, last_error: Problem | null,
 *     scene: any, availability: {share: number, known_s: number, days: (number | null)[]} | null, alerts: string[],
 *     outputs: Output[]}} Camera
 * @typedef {{time_ms: number, http_write: boolean, process: any, bound: any, devices: any[], cameras: Camera[]}} Status
 */

const EVERY_MS = 1000, EACH_CAMERA_MS = 10; // of many cameras it is long, and the daemon has other work
/** @type {Set<(status: Status) => void>} */
const listeners = new Set();
/** @type {Status | null} */
let latest = null;
/** @type {number | undefined} */
let timer;
let running = false;
let clockAhead = 0; // ms, of this machine before the daemon's

/** ms since 1970 by the daemon's clock */
export function daemonNow() {
  return Date.now() - clockAhead;
}

/**
 * @param {(status: Status) => void} listener  called now, where there is a status, and with each one that comes
 * @returns {() => void}  ends it
 */
export function onStatus(listener) {
  listeners.add(listener);
  if (latest)
    listener(latest);
  return () => listeners.delete(listener);
}

/** Asks now, not only at the next second. */
export async function refresh() {
  const before = Date.now();
  /** @type {Status} */
  const status = await getJson("api/v1/status");
  const after = Date.now();
  clockAhead = (before + after) / 2 - status.time_ms;
  latest = status;
  for (const listener of listeners)
    listener(status);
}

/** @param {(problem: unknown) => void} tell  null: it goes well */
export function watchStatus(tell) {
  async function turn() {
    clearTimeout(timer);
    if (running || document.hidden)
      return;
    running = true;
    try {
      await refresh();
      tell(null);
    } catch (error) {
      tell(error);
    }
    running = false;
    timer = window.setTimeout(turn, Math.max(EVERY_MS, EACH_CAMERA_MS * (latest?.cameras.length ?? 0)));
  }
  document.addEventListener("visibilitychange", turn);
  turn();
}
