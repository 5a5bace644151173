// Commands that read an output, ready to be pasted into a terminal.

import {hasToken} from "./api.js";

/** @typedef {import("./status.js").Camera} Camera
 *  @typedef {import("./status.js").Output} Output
 *  @typedef {{what: string, text: string}} Command */

/** Returns the address of this page's folder. */
function base() {
  return new URL(".", location.href.replace(/#.*/, "")).href;
}

/** Returns a program's option with the token's header; empty without a token. */
function tokenAs(/** @type {string} */ option) {
  return hasToken() ? ` ${option} "Authorization: Bearer $TOKEN"` : "";
}

/**
 * Quotes a text as one word of the shell.
 * @param {string} text
 */
function word(text) {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

/**
 * @param {string} path
 * @param {string} file
 */
function fetchInto(path, file) {
  return `curl -s${tokenAs("-H")} ${word(base() + path)} > ${word(file)}`;
}

/**
 * Returns a command that prints a socket's data.
 * @param {string} sink
 */
function netcat(sink) {
  return sink.startsWith("unix:") ? `nc -U ${word(sink.slice(5))}` : `nc ${sink.slice(4).replace(/[[\]]/g, "").replace(/:(\d+)$/, " $1")}`;
}

/**
 * Returns a command that reads an output's sink.
 * @param {Output} output
 * @returns {Command | null}
 */
function readerOf(output) {
  const sink = output.sink.replace(/^tcp:(0\.0\.0\.0|\[::\])(?=:)/, `tcp:${location.hostname}`);
  const file = sink.replace(/^file:/, "");
  if (sink.startsWith("ring:") || /^(tcp|unix):/.test(sink) && output.protocol === "framed" && output.kernel !== "stats")
    return {what: `Frames in Python, with python3-framedio${sink.startsWith("tcp:") ? "" : ", by members of the socket's group"}`, text: `python3 -c ${word(`
import framedio
for frame in framedio.open(${JSON.stringify(sink)}): print(frame.camera, frame.sequence, frame.numpy().shape, flush=True)`)}`};
  if (/^(tcp|unix):/.test(sink) && output.protocol === "y4m")
    return {what: "In a player", text: `ffplay -fflags nobuffer ${word(sink.replace(/^tcp:/, "tcp://"))}`};
  if (/^(tcp|unix):/.test(sink))
    return {what: output.kernel === "stats" ? "Lines of JSON" : "Bytes", text: netcat(sink)};
  if (/^rtsps?:/.test(sink))
    return {what: "In a player", text: `ffplay ${word(sink)}`};
  return {what: "The newest files", text: `ls -t ${word(file.replace(/[^/]*$/, ""))} | head`};
}

/**
 * @param {Camera} camera
 * @param {Output} output
 * @returns {Command[]}
 */
export function commandsOf(camera, output) {
  const path = `api/v1/cameras/${camera.name}/outputs/${output.name}/snapshot.jpg`, reader = readerOf(output);
  const shown = output.kernel === "warp" || output.kernel === "yuv";
  return [...(reader ? [reader] : []), ...(shown ? [{what: "What it shows, as a picture", text: fetchInto(path, `${output.name}.jpg`)}] : [])];
}

/**
 * @param {Camera} camera
 * @returns {Command[]}
 */
export function commandsOfCamera(camera) {
  const path = `api/v1/cameras/${camera.name}`;
  return [
    {what: "A picture, on its machine", text: `framed snap ${camera.name} > ${camera.name}.jpg`},
    {what: "A picture, by HTTP", text: fetchInto(`${path}/snapshot.jpg?width=1280`, `${camera.name}.jpg`)},
    {what: "Motion JPEG, in a player", text: `ffplay${tokenAs("-headers")} ${word(`${base()}${path}/stream.mjpg?width=640&fps=10`)}`},
  ];
}
