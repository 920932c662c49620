// Markdown as elements. `marked` makes HTML of it and DOMPurify keeps the tags of texts and nothing that
// runs, loads or leads to another scheme; the policy of the page would stop the rest.

import { marked } from "./marked.esm.js";
import DOMPurify from "./purify.es.mjs";

const TAGS = ["a", "b", "blockquote", "br", "code", "del", "em", "hr", "i", "li", "ol", "p", "pre", "s", "strong", "sub", "sup", "table",
  "tbody", "td", "th", "thead", "tr", "ul", "#text"];
const CLEAN = {
  ALLOWED_TAGS: TAGS, ALLOWED_ATTR: ["href", "title", "start"], ALLOWED_URI_REGEXP: /^(?:https?|mailto):/i, ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false, RETURN_DOM_FRAGMENT: true,
};
const KEPT = 100;

marked.use({
  gfm: true,
  breaks: true,
  renderer: {
    // A heading of a message is none of the page.
    heading({ tokens }) { return `<p><strong>${this.parser.parseInline(tokens)}</strong></p>`; },
    image({ href, text }) { return `<a href="${href}">${text || href}</a>`; },
    checkbox({ checked }) { return checked ? "☑ " : "☐ "; },
  },
});

DOMPurify.addHook("afterSanitizeAttributes", (node) => {
  if (node.localName !== "a") return;
  node.setAttribute("target", "_blank");
  node.setAttribute("rel", "noopener noreferrer");
});

const known = new Map();

/** The elements of a text, of which there may be `budget.left`; null if there are more. */
export function markdown(text, budget) {
  if (!known.has(text)) {
    if (known.size >= KEPT) known.delete(known.keys().next().value);
    known.set(text, DOMPurify.sanitize(marked.parse(text).trim(), CLEAN));
  }
  const elements = known.get(text);
  const count = elements.querySelectorAll("*").length;
  if (count > budget.left) return null;
  budget.left -= count;
  return elements.cloneNode(true);
}
