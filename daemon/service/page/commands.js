// Commands that read an output, ready to be pasted into a terminal.

/** @typedef {import("./status.js").Camera} Camera
 *  @typedef {import("./status.js").Output} Output */

/** Where this page comes from. */
function base() {
  return new URL(".", location.href.replace(/#.*/, "")).href;
}

/**
 * The sink's address as other machines reach it.
 * @param {string} sink
 */
function reachable(sink) {
  return sink.replace(/^tcp:(0\.0\.0\.0|\[::\]|::)(?=:)/, `tcp:${location.hostname}`);
}

/** @param {string} url */
function fetchWith(url) {
  const token = sessionStorage.getItem("framed-token") ? `-H "Authorization: Bearer $TOKEN" ` : "";
  return `curl -s ${token}'${url}'`;
}

/**
 * @param {Camera} camera
 * @param {Output} output
 * @returns {{what: string, text: string}[]}
 */
export function commandsOf(camera, output) {
  const sink = reachable(output.sink), path = `${base()}api/v1/cameras/${encodeURIComponent(camera.name)}`;
  const list = [];
  if (output.kernel === "stats")
    list.push({what: "The lines of JSON", text: sink.startsWith("tcp:") ? `nc ${sink.slice(4).replace(/:(\d+)$/, " $1")}` : sink.startsWith("unix:") ? `nc -U ${sink.slice(5)}` : `tail -f ${sink.slice(5)}`});
  else if (sink.startsWith("ring:") || /^(tcp|unix):/.test(sink) && output.kernel === "warp")
    list.push({what: "Tensors in Python", text: `python3 -c '
import framedio
for frame in framedio.open("${sink}"):
  print(frame.camera, frame.sequence, frame.numpy().shape, frame.numpy().mean(), flush=True)'`});
  else if (/^(tcp|unix):/.test(sink)) {
    list.push({what: "With protocol: y4m, in a player", text: `ffplay -fflags nobuffer ${sink.replace(/^tcp:/, "tcp://").replace(/^unix:/, "unix:")}`});
    list.push({what: "With protocol: framed, in Python", text: `python3 -c '
import framedio
for frame in framedio.open("${sink}"):
  print(frame.camera, frame.sequence, flush=True)'`});
  } else if (sink.startsWith("file:"))
    list.push({what: "The newest files", text: `ls -lt ${sink.slice(5).replace(/[^/]*$/, "")} | head`});
  else if (/^rtsps?:/.test(sink))
    list.push({what: "In a player", text: `ffplay ${sink}`});
  if (output.kernel === "warp" || output.kernel === "yuv")
    list.push({what: "A picture of what it shows", text: `${fetchWith(`${path}/outputs/${encodeURIComponent(output.name)}/snapshot.jpg`)} > ${output.name}.jpg`});
  return list;
}

/** @param {Camera} camera */
export function commandsOfCamera(camera) {
  const path = `${base()}api/v1/cameras/${encodeURIComponent(camera.name)}`;
  return [
    {what: "A picture of it, on this machine", text: `framed snap ${camera.name} > ${camera.name}.jpg`},
    {what: "A picture of it, by HTTP", text: `${fetchWith(`${path}/snapshot.jpg?width=1280`)} > ${camera.name}.jpg`},
    {what: "Motion JPEG in a player", text: `ffplay '${path}/stream.mjpg?width=640&fps=10'`},
  ];
}
