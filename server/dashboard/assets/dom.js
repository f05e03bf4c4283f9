// Builds elements. Text is only ever set as text, so the name of a node or a role
// cannot become markup.

// Invisible characters, and characters that change the text direction, can make a name
// appearance like another one. Sentences contain isolates, so those are replaced in names only.
const invisible = /[\p{Cc}\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u2065\u206a-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\u{e0000}-\u{e0fff}]/gu;

const isolates = /[\u2066-\u2069]/g;
const codePoint = (c) => `⟨U+${c.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`;

// visible replaces invisible characters of a sentence with their code points.
const visible = (text) => String(text).replace(invisible, codePoint);

// visibleName does the same for a name, in which it replaces isolates too.
export const visibleName = (text) => visible(text).replace(isolates, codePoint);

export function h(tag, props = {}, ...children) {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key === "class") element.className = value;
    else if (key === "value") element.value = value;
    else if (key === "title" || key === "aria-label") element.setAttribute(key, visible(value));
    else element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== undefined && child !== null && child !== false)
    .map((child) => (child instanceof Node ? child : visible(child))));
  return element;
}

// ends returns the start and the end of a long name. Names of pods differ in their last five letters,
// so a name that is cut keeps them. Other scripts than this one join letters, and are not split.
export const ends = (text) => (/^[\x21-\x7e]{13,}$/.test(text) ? [text.slice(0, -5), text.slice(-5)] : [text, ""]);

// endWidth returns the width of the end of a name. In a wider element, a gap would follow the name.
const ruler = document.createElement("canvas").getContext("2d");
function endWidth(text) {
  ruler.font = `100px ${getComputedStyle(document.body).fontFamily}`;
  return `${Math.ceil(ruler.measureText(text).width + 2) / 100}em`;
}

// inParts returns the content of an element that may cut a name.
export function inParts(text) {
  const [start, end] = ends(text);
  if (!end) return text;
  const parts = [h("span", { class: "start" }, start), h("span", { class: "end" }, end)];
  parts.forEach((part) => part.style.setProperty("--end", endWidth(end)));
  return parts;
}

// name shows a name in its own text direction, cut before its end if there is no room, with the whole
// name as a title.
export function name(text, href) {
  const shown = visibleName(text || "(no name)");
  return href ? h("a", { class: "name", dir: "auto", title: shown, href }, inParts(shown)) : h("span", { class: "name", dir: "auto", title: shown }, inParts(shown));
}

// inText shows a name in a sentence, cut if it is long, with the whole name as a title.
export function inText(text, href) {
  const shown = visibleName(text || "(no name)");
  return href ? h("a", { class: "in-text", dir: "auto", title: shown, href }, inParts(shown)) : h("bdi", { class: "in-text", title: shown }, inParts(shown));
}

// lines shows a sentence on as many lines as its row has, with the whole sentence as a title.
export function lines(...children) {
  const element = h("span", { class: "lines" }, ...children);
  element.title = element.textContent;
  return element;
}

// prose shows a description, on several lines if necessary.
export const prose = (text) => h("span", { class: "prose", dir: "auto", title: text }, text);

const shapes = {
  good: ["M7 1a6 6 0 1 0 0 12A6 6 0 0 0 7 1z", "M4.200 7.200l2 2 3.600-4"],
  warning: ["M7 1.500 13.200 12.500H.8z", "M7 5.500v3M7 10.400v.2"],
  critical: ["M4.500 1h5L13 4.500v5L9.500 13h-5L1 9.500v-5z", "M4.800 4.800l4.400 4.400M9.200 4.800 4.800 9.200"],
  paused: ["M7 1a6 6 0 1 0 0 12A6 6 0 0 0 7 1z", "M5.500 4.800v4.400M8.500 4.800v4.400"],
  faint: ["M7 2.500a4.500 4.500 0 1 0 0 9 4.500 4.500 0 0 0 0-9z"],
  began: ["M3 1.500 12 7 3 12.500z"],
  ended: ["M2.500 2.500h9v9h-9z"],
  theme: ["M7 1a6 6 0 1 0 0 12A6 6 0 0 0 7 1z", "M7 1v12M7 4.500h3.500M7 7h5M7 9.500h3.500"],
  action: ["M7 1.200 8.700 5l4.100.4-3.100 2.700 1 4L7 10l-3.700 2.100 1-4L1.200 5.400 5.300 5z"],
};

// sign returns a small shape, which always stands beside a word.
export function sign(kind) {
  const namespace = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(namespace, "svg");
  svg.setAttribute("class", "sign");
  svg.setAttribute("viewBox", "0 0 14 14");
  svg.setAttribute("aria-hidden", "true");
  for (const d of shapes[kind] ?? shapes.faint) {
    const path = document.createElementNS(namespace, "path");
    path.setAttribute("d", d);
    path.setAttribute("fill", "none");
    path.setAttribute("stroke", "currentColor");
    path.setAttribute("stroke-width", "1.5");
    path.setAttribute("stroke-linejoin", "round");
    path.setAttribute("stroke-linecap", "round");
    svg.append(path);
  }
  return svg;
}

export function status(level, text, shape = level) {
  return h("span", { class: `status is-${level}` }, sign(shape), text);
}

export function panel(title, tools, ...body) {
  return h("section", { class: "panel" }, h("header", {}, h("h2", {}, title), tools), body);
}

// figures shows values with their names, and their age if one is given.
export function figures(pairs, age) {
  return h("dl", { class: "figures" }, pairs.map(([term, value, note]) => h("div", {}, h("dt", {}, age ? `${term}, ${age}` : term), h("dd", {}, value, note ? h("small", {}, " " + note) : null))));
}

export function meter(share, low) {
  const bar = h("span");
  bar.style.width = `${Math.round(100 * Math.min(1, Math.max(0, share)))}%`;
  return h("span", { class: low ? "meter low" : "meter", "aria-hidden": "true" }, bar);
}

// updateElement makes an element equal to another one. It replaces only the parts that
// differ, so that a button that the user is about to press stays.
export function updateElement(old, next) {
  if (old.isEqualNode(next)) return;
  const plain = [...old.childNodes].every((child) => child.nodeType === Node.ELEMENT_NODE);
  if (plain && old.childElementCount && old.childNodes.length === next.childNodes.length && old.cloneNode(false).isEqualNode(next.cloneNode(false))) {
    const parts = [...next.children];
    if (parts.length === old.childElementCount) {
      [...old.children].forEach((child, i) => updateElement(child, parts[i]));
      return;
    }
  }
  const focusable = (element) => [element, ...element.querySelectorAll("a, button")];
  const focused = focusable(old).indexOf(document.activeElement);
  old.replaceWith(next);
  if (focused >= 0) focusable(next)[focused]?.focus();
}

// reorder gives an element the wanted children in their order. It does not move the
// child that has the focus, which would lose the focus.
export function reorder(parent, children) {
  const wanted = new Set(children);
  for (const child of [...parent.children]) if (!wanted.has(child)) child.remove();
  let at = parent.firstElementChild;
  for (const child of children) {
    if (child !== at && child.contains(document.activeElement)) {
      while (at !== child) { // those children are inserted after it
        const next = at.nextElementSibling;
        at.remove();
        at = next;
      }
    }
    if (child === at) at = at.nextElementSibling;
    else parent.insertBefore(child, at);
  }
}

let announcement;
// announce makes a screen reader read a text.
export function announce(text) {
  clearTimeout(announcement);
  const region = document.getElementById("announcements");
  announcement = setTimeout(() => { region.textContent = text; }, 150);
}
