// Builds and changes elements of the page.

/**
 * Returns an element with attributes, listeners (`onclick`) and children; false, null and undefined omit an attribute.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Object<string, any>} [attributes]
 * @param {...(Node | string | number | null | undefined | false)} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on"))
      element.addEventListener(name.slice(2), value);
    else if (value !== false && value !== null && value !== undefined)
      element.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children)
    if (child !== null && child !== undefined && child !== false)
      element.append(typeof child === "number" ? String(child) : child);
  return element;
}

/**
 * Writes a text only if it differs, so as not to disturb a selection or a screen reader.
 * @param {Element} element
 * @param {string} text
 */
export function setText(element, text) {
  if (element.textContent !== text)
    element.textContent = text;
}

/**
 * Arranges elements in order and removes all others; the focused element keeps the focus.
 * @param {Element} parent
 * @param {Element[]} elements
 */
export function arrange(parent, elements) {
  const focus = document.activeElement;
  elements.forEach((element, i) => {
    if (parent.children[i] !== element)
      parent.insertBefore(element, parent.children[i] ?? null);
  });
  while (parent.children.length > elements.length)
    parent.lastElementChild?.remove();
  if (focus instanceof HTMLElement && focus !== document.activeElement && document.contains(focus))
    focus.focus({preventScroll: true});
}

/**
 * Moves the focus between tiles or rows with the arrow keys, Home and End.
 * @param {KeyboardEvent} event
 */
export function walk(event) {
  const links = [...document.querySelectorAll(".wall li:not([hidden]) > a, .cameras tbody tr:not([hidden]) a[href]")]
    .filter((link) => /** @type {HTMLElement} */ (link).offsetParent);
  const at = links.indexOf(/** @type {Element} */ (document.activeElement));
  const top = links[0]?.getBoundingClientRect().top;
  const below = links.findIndex((link) => link.getBoundingClientRect().top > top + 4);
  const columns = below < 0 ? links.length : below;
  /** @type {Object<string, number>} */
  const steps = {ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns, Home: -at, End: links.length - 1 - at};
  const step = steps[event.key];
  if (at < 0 || step === undefined)
    return;
  event.preventDefault();
  /** @type {HTMLElement | undefined} */ (links[at + step])?.focus();
}

/** @param {() => void} changed */
export function nameFilter(changed) {
  return h("input", {type: "search", placeholder: "Filter by name", "aria-label": "Filter by name", oninput: changed});
}

/**
 * Gives the canvas as many pixels as the screen has for it, clears it, and returns its context.
 * @param {HTMLCanvasElement} canvas
 * @returns {{context: CanvasRenderingContext2D, width: number, height: number}} sizes in CSS pixels
 */
export function prepareCanvas(canvas) {
  const scale = window.devicePixelRatio || 1;
  const {clientWidth: width, clientHeight: height} = canvas;
  if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
  }
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.clearRect(0, 0, width, height);
  return {context, width, height};
}

/**
 * Returns a colour of the stylesheet, the value of its variable.
 * @param {string} name
 */
export function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

/**
 * Returns a button that copies a text and confirms it.
 * @param {() => string} text
 * @param {string} label
 */
export function copyButton(text, label) {
  const button = h("button", {type: "button", class: "quiet", "aria-label": `Copy ${label}`, onclick: copy}, "Copy");
  async function copy() {
    const done = await copyText(text());
    setText(button, done ? "Copied" : "Select it and press Ctrl+C");
    setTimeout(() => setText(button, "Copy"), 1500);
  }
  return button;
}

/**
 * Browsers have navigator.clipboard only on https and localhost.
 * @param {string} text
 */
async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = h("textarea", {"aria-hidden": "true", class: "offscreen"});
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}
