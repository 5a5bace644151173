// The ten minutes that the daemon keeps of each camera.

import {WANTED_LOSSES} from "./words.js";

/**
 * Lists begin with the oldest sample, and count what came in an interval, or are ms; null: there was none.
 * @typedef {(number | null)[]} Samples
 * @typedef {{out: Samples, lost: Object<string, Samples>, latency: Object<string, Samples>, p99: Samples}} OutputHistory
 * @typedef {{in: Samples, decoded: Samples, reconnects: Samples, outputs: Object<string, OutputHistory>}} CameraHistory
 * @typedef {{interval_ms: number, newest_ms: number, cameras: Object<string, CameraHistory>}} History
 */

/**
 * Losses of the last `n` samples, by reason.
 * @param {CameraHistory[]} cameras
 * @param {number} n
 */
export function lossesOf(cameras, n) {
  /** @type {Object<string, number>} */
  const sums = {};
  for (const camera of cameras)
    for (const output of Object.values(camera.outputs))
      for (const [reason, samples] of Object.entries(output.lost))
        sums[reason] = (sums[reason] ?? 0) + samples.slice(-n).reduce((/** @type {number} */ sum, lost) => sum + (lost ?? 0), 0);
  return sums;
}

/** Losses that nobody asked for, all outputs together, in `bars` parts of the last `n` samples.
 *  @param {CameraHistory} camera @param {number} n @param {number} bars */
export function lossBars(camera, n, bars) {
  const sums = new Array(bars).fill(0);
  for (const output of Object.values(camera.outputs))
    for (const [reason, samples] of Object.entries(output.lost)) {
      if (WANTED_LOSSES.includes(reason))
        continue;
      const last = samples.slice(-n);
      last.forEach((lost, i) => sums[Math.floor((i + n - last.length) * bars / n)] += lost ?? 0);
    }
  return sums;
}
