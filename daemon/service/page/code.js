// Text with numbered lines, some of them marked.

import {h} from "./dom.js";

/**
 * A mistake without a line has no place in a file.
 * @typedef {{file?: string, line?: number, column?: number, key?: string, text: string}} Mistake
 */

/** A read-only text. */
export class CodeView {
  /** @param {string} label */
  constructor(label) {
    this.list = h("ol", {});
    this.element = h("div", {class: "code", tabindex: "0", role: "region", "aria-label": label}, this.list);
  }

  /**
   * @param {string} text
   * @param {Mistake[]} mistakes
   */
  set(text, mistakes) {
    const wrong = new Map(mistakes.map((mistake) => [mistake.line ?? 0, mistake]));
    this.list.replaceChildren(...text.replace(/\n$/, "").split("\n").map((line, i) => {
      const mistake = wrong.get(i + 1);
      return h("li", {class: mistake ? "wrong" : false, title: mistake?.text}, h("code", {}, line || " "));
    }));
  }

  /** @param {number} number  of a line, from 1 */
  go(number) {
    const line = this.list.children[number - 1];
    for (const other of this.list.querySelectorAll(".at"))
      other.classList.remove("at");
    line?.classList.add("at");
    line?.scrollIntoView({block: "center"});
    this.element.focus({preventScroll: true});
  }
}

/** An editable text. */
export class CodeEditor {
  /**
   * @param {string} label
   * @param {string} hint
   * @param {() => void} changed
   */
  constructor(label, hint, changed) {
    this.numbers = h("pre", {"aria-hidden": "true"});
    this.area = h("textarea", {"aria-label": label, placeholder: hint, spellcheck: "false", wrap: "off", autocapitalize: "off", rows: "16"});
    this.element = h("div", {class: "editor"}, this.numbers, this.area);
    /** @type {Set<number>} */
    this.wrong = new Set();
    this.area.addEventListener("input", () => {
      this.number();
      changed();
    });
    this.area.addEventListener("scroll", () => this.numbers.scrollTop = this.area.scrollTop);
    this.number();
  }

  text() {
    return this.area.value;
  }

  number() {
    const n = this.area.value.split("\n").length;
    this.numbers.replaceChildren(...Array.from({length: n}, (_, i) => h("span", {class: this.wrong.has(i + 1) ? "wrong" : false}, `${i + 1}\n`)));
  }

  /** @param {Mistake[]} mistakes */
  mark(mistakes) {
    this.wrong = new Set(mistakes.map((mistake) => mistake.line ?? 0));
    this.number();
  }

  /**
   * @param {number} line
   * @param {number} [column]
   */
  go(line, column = 1) {
    const lines = this.area.value.split("\n");
    const from = lines.slice(0, line - 1).reduce((sum, text) => sum + text.length + 1, 0);
    this.area.focus();
    this.area.setSelectionRange(from + Math.max(0, column - 1), from + (lines[line - 1]?.length ?? 0));
    const height = this.area.scrollHeight / lines.length;
    this.area.scrollTop = Math.max(0, (line - 1) * height - this.area.clientHeight / 2);
  }
}

/**
 * @param {Mistake[]} mistakes
 * @param {string | undefined} file  the file on view; the list names other files
 * @param {(mistake: Mistake) => void} go  shows a mistake of that file
 */
export function mistakeList(mistakes, file, go) {
  return h("ol", {class: "mistakes"}, ...mistakes.map((mistake) => {
    const place = mistake.line ? `Line ${mistake.line}, column ${mistake.column}` : "";
    const words = [h("b", {}, mistake.file === file ? place : `${mistake.file ?? ""} ${place}`), " ", h("code", {}, mistake.key ?? ""), " ", mistake.text];
    return h("li", {}, mistake.line && mistake.file === file ? h("button", {type: "button", onclick: () => go(mistake)}, ...words) : h("p", {}, ...words));
  }));
}
