// The daemon's status, requested each second while the page is visible.

import {getJson} from "./api.js";

/**
 * A camera on the wall; members without a value are absent.
 * @typedef {{name: string, state: string, fps_in: number, fps_out: number, damaged: number, next_try_s?: number, p99_s?: number,
 *     max_age_s?: number, stream?: string, alerts?: string[], error?: string, output_error?: string}} Brief
 * @typedef {{time_ms: number, http_write: boolean, process: any, bound: any, devices: any[], cluster?: Member & {nodes: number,
 *     cameras: number, elsewhere: number, troubled: number}, cameras: Brief[]}} Summary
 */

/**
 * This daemon in its cluster, and the whole site; without a cluster Cluster is empty.
 * @typedef {{node: string, site: string, state: string, plan: number, alone_s: number | null, error: string | null}} Member
 * @typedef {{name: string, readable: boolean, http: string, version: string, room: number, used: number, draining: boolean, obeys: number,
 *     behind: boolean, cameras: number, running: number, since_ms: number, labels: Object<string, string>, refused: string[]}} SiteNode
 * @typedef {{name: string, node: string | null, generation: number, state: string, why: string | null, wish: string | null,
 *     on: Object<string, string>}} SiteCamera
 * @typedef {Member & {nodes: SiteNode[], cameras: SiteCamera[]}} Cluster
 */

/**
 * The parts of a camera's status that its page shows; framed(1) lists all.
 * @typedef {{text: string, age_s: number}} Problem
 * @typedef {{p50_s: number | null, p99_s: number | null}} Latency
 * @typedef {{name: string, behind: number, held: number, taken: number, missed: number}} Consumer
 * @typedef {{name: string, kernel: string, sink: string, open: boolean, protocol: string, clients: number, consumers: Consumer[],
 *     offered: number, emitted: number, lost: Object<string, number>, fps_out: number, fps_lost: number,
 *     latency: Latency, results: any, last_error: Problem | null}} Output
 * @typedef {{name: string, state: string, next_try_s: number | null, url: string, stream: string | null,
 *     codec: string | null, profile: string | null, bits_per_second: number, keyframe_s: number | null,
 *     clock: {offset_s: number, jitter_s: number} | null, picture: {width: number, height: number} | null, decoder: string | null,
 *     backend: string | null, device: number | null, fps_in: number, pictures: number, decodes: string | null,
 *     skipped: number, converted: number, flagged: Object<string, number>, reconnects: number,
 *     thread: Object<string, number>, network: Object<string, any> | null, last_error: Problem | null,
 *     scene: any, availability: {share: number, known_s: number, days: (number | null)[]} | null, alerts: string[],
 *     outputs: Output[]}} Camera
 * @typedef {{time_ms: number, http_write: boolean, cluster?: Member, cameras: Camera[]}} Status
 */

const EVERY_MS = 1000;
const SUMMARY = "api/v1/summary";
export const CLUSTER = "api/v1/cluster";
/** @type {Set<(status: any) => void>} */
const listeners = new Set();
/** @type {any} */
let latest = null;
let path = SUMMARY;
/** @type {number | undefined} */
let timer;
let running = false;
let clockAhead = 0; // ms: this machine's clock minus the daemon's

/** Returns ms since 1970 by the daemon's clock. */
export function daemonNow() {
  return Date.now() - clockAhead;
}

/**
 * All listeners belong to one page, and listen to the same path.
 * @param {(status: Summary) => void} listener  called at once if a status is known, and with each new one
 * @returns {() => void}  stops listening
 */
export function onSummary(listener) {
  return on(SUMMARY, listener);
}

/**
 * @param {string} name  of a camera; if it does not exist, the status has no camera
 * @param {(status: Status) => void} listener
 * @returns {() => void}
 */
export function onCamera(name, listener) {
  return on(`api/v1/status?camera=${encodeURIComponent(name)}`, listener);
}

/** @param {(cluster: Cluster) => void} listener */
export function onCluster(listener) {
  return on(CLUSTER, listener);
}

/**
 * @param {string} wanted
 * @param {(status: any) => void} listener
 */
function on(wanted, listener) {
  listeners.add(listener);
  if (path !== wanted)
    latest = null;
  path = wanted;
  if (latest)
    listener(latest);
  else
    turn();
  return () => listeners.delete(listener);
}

/** Requests the status at once, not at the next second. */
export async function refresh() {
  const before = Date.now(), asked = path;
  const status = await getJson(asked);
  const after = Date.now();
  if (asked !== path)
    return;
  if (status.time_ms)
    clockAhead = (before + after) / 2 - status.time_ms;
  latest = status;
  for (const listener of listeners)
    listener(status);
}

/** @type {(problem: unknown) => void} */
let tell = () => {};

async function turn() {
  clearTimeout(timer);
  if (running || document.hidden)
    return;
  running = true;
  const asked = path;
  try {
    await refresh();
    tell(null);
  } catch (error) {
    tell(error);
  }
  running = false;
  timer = window.setTimeout(turn, asked === path ? EVERY_MS : 0);
}

/** @param {(problem: unknown) => void} listener  null: no problem */
export function watchStatus(listener) {
  tell = listener;
  document.addEventListener("visibilitychange", turn);
  turn();
}
