// The value is a function that returns what a user cannot read or reach in the page, when the
// page should be at most width pixels wide. Each finding has a kind:
//
//   overlap   two texts of different elements lie on one another
//   cut       a part of a text is cut off, and nothing shows the whole text
//   covered   another element hides a text
//   hidden    a control has no visible part
//   outside   a part of a control is outside of the box that clips it
//   blocked   another element lies on the center of a control
//   gap       a name is followed by space that is not in its text
//   sideways  the page scrolls sideways, or a part of it that is not the frame of a table
//
// The page must be at rest, and not scrolled. Texts that a user reaches by scrolling are not
// cut off. Of a modal dialog, only its content is checked.
(width) => {
  const slack = 1.5; // pixels: browsers round boxes
  document.querySelectorAll(".with-age .small").forEach((age) => { age.textContent = "as of 59 min ago"; }); // the longest one must fit
  const page = document.documentElement;
  const root = document.querySelector("dialog:modal") ?? document.body;
  const findings = [];

  const styles = new Map();
  const styleOf = (e) => {
    if (!styles.has(e)) styles.set(e, getComputedStyle(e));
    return styles.get(e);
  };
  const box = (r) => ({ left: r.left, top: r.top, right: r.right, bottom: r.bottom });
  const isEmpty = (r) => r.right - r.left < 0.5 || r.bottom - r.top < 0.5;
  const common = (a, b) => ({ left: Math.max(a.left, b.left), top: Math.max(a.top, b.top), right: Math.min(a.right, b.right), bottom: Math.min(a.bottom, b.bottom) });
  const area = (r) => (isEmpty(r) ? 0 : (r.right - r.left) * (r.bottom - r.top));
  const plain = (text) => text.replace(/[\u200e\u200f\u2066-\u2069]/g, "").replace(/\s+/g, " ").trim();

  // within returns the box inside the borders of an element, without its scroll bars.
  function within(e) {
    const outer = e.getBoundingClientRect(), left = outer.left + e.clientLeft, top = outer.top + e.clientTop;
    return { left, top, right: left + e.clientWidth, bottom: top + e.clientHeight };
  }

  // cuts returns how an element treats what does not fit: "clip", "scroll" or "".
  function cuts(e, axis) {
    const style = styleOf(e), overflow = style[`overflow${axis}`];
    if (overflow === "visible" || style.display === "inline" || style.display === "contents") return "";
    return overflow === "auto" || overflow === "scroll" ? "scroll" : "clip";
  }
  const scrolls = (e) => (cuts(e, "X") === "scroll" && e.scrollWidth > e.clientWidth + 1) || (cuts(e, "Y") === "scroll" && e.scrollHeight > e.clientHeight + 1);

  // clippersOf returns the elements that clip what is in an element, the innermost first. An
  // element that is taken out of the flow is clipped by its containing block and what is around it.
  function clippersOf(element) {
    const found = [];
    let escaped = "";
    for (let e = element; e && e !== document.body && e !== page; e = e.parentElement) {
      const { position, transform, contain } = styleOf(e);
      const contains = transform !== "none" || /layout|paint|strict|content/.test(contain);
      if (escaped && (contains || (escaped === "absolute" && position !== "static"))) escaped = "";
      if (!escaped && (cuts(e, "X") || cuts(e, "Y"))) found.push(e);
      if (position === "fixed" || (position === "absolute" && !escaped)) escaped = position;
    }
    return found;
  }
  const clippersAround = (element) => {
    const { position } = styleOf(element);
    const all = clippersOf(element);
    if (position === "absolute" || position === "fixed") return all.filter((e) => e !== element);
    return element.parentElement ? clippersOf(element.parentElement) : [];
  };

  // isForReaders reports whether only screen readers see an element, on purpose.
  function isForReaders(element) {
    for (let e = element; e; e = e.parentElement) {
      const style = styleOf(e);
      if (style.clipPath.startsWith("inset(50%") || style.clip === "rect(0px, 0px, 0px, 0px)") return true;
    }
    return false;
  }
  const isShown = (e) => e.checkVisibility({ visibilityProperty: true, opacityProperty: true, contentVisibilityAuto: true }) && !isForReaders(e);

  // overlayOf returns the element above the page that an element is in: it is out of the flow, has
  // a place in the order of layers, and hides what is behind it, all on purpose.
  function overlayOf(element) {
    for (let e = element; e && e !== document.body; e = e.parentElement) {
      const { position, zIndex, backgroundColor } = styleOf(e);
      const opaque = /^rgb\(/.test(backgroundColor);
      if ((position === "absolute" || position === "fixed") && zIndex !== "auto" && opaque) return e;
    }
    return null;
  }

  // whereIs describes an element by itself and those around it that have a class or an id.
  function whereIs(element) {
    const parts = [];
    for (let e = element; e && e !== page && parts.length < 4; e = e.parentElement) {
      const classes = [...e.classList].filter((c) => c !== "fresh").map((c) => `.${c}`).join("");
      const part = `${e.localName}${e.id && e.id.length < 20 ? `#${e.id}` : ""}${classes}`;
      if (e === element || part !== e.localName) parts.unshift(part);
    }
    return parts.join(" ");
  }

  // report notes a finding once for each pair of places, with how often it occurs.
  const byPlace = new Map();
  const short = (text) => { const letters = [...plain(text)]; return letters.length > 70 ? `${letters.slice(0, 69).join("")}…` : letters.join(""); };
  const rounded = (r) => (r ? [r.left, r.top, r.right - r.left, r.bottom - r.top].map(Math.round) : null);
  function report(kind, first, second = null) {
    const finding = {
      kind, text: short(first.text), where: whereIs(first.element), box: rounded(first.box),
      otherText: second ? short(second.text) : "", otherWhere: second ? whereIs(second.element) : "", otherBox: rounded(second?.box), times: 1,
    };
    const key = [kind, finding.where, finding.otherWhere].join("\n");
    if (byPlace.has(key)) byPlace.get(key).times++;
    else {
      byPlace.set(key, finding);
      findings.push(finding);
    }
  }

  // clipped returns what is left of a box in its clippers, and how much of it is lost for good. With
  // scrolled, it is what a user sees after scrolling to it; else what a user sees now.
  function clipped(start, clippers, scrolled) {
    let r = { ...start }, lost = 0;
    for (const e of clippers) {
      const inner = within(e);
      for (const [axis, low, high, offset] of [["X", "left", "right", e.scrollLeft], ["Y", "top", "bottom", e.scrollTop]]) {
        const kind = cuts(e, axis);
        if (!kind || r[high] <= r[low]) continue;
        if (kind === "scroll" && scrolled) {
          lost = Math.max(lost, inner[low] - offset - r[low]); // a user cannot scroll there
          const [from, to] = [Math.max(r[low], inner[low]), Math.min(r[high], inner[high])];
          [r[low], r[high]] = from < to ? [from, to] : [inner[low], inner[high]];
          continue;
        }
        const before = r[high] - r[low];
        r[low] = Math.max(r[low], inner[low]);
        r[high] = Math.min(r[high], inner[high]);
        lost = Math.max(lost, before - Math.max(0, r[high] - r[low]));
      }
    }
    return { rest: r, lost };
  }

  // The visible letters of a line are not as high as its box.
  const ink = (r) => { const high = r.bottom - r.top; return { left: r.left, right: r.right, top: r.top + 0.17 * high, bottom: r.bottom - 0.06 * high }; };

  // hasFullForm reports whether a user can read the whole text in another way.
  function hasFullForm(text, element) {
    const whole = plain(text);
    for (let e = element; e; e = e.parentElement) {
      if ([e.getAttribute("title"), e.getAttribute("aria-label")].some((full) => full && plain(full).includes(whole))) return true;
      if (e.id && document.querySelector(`[aria-expanded="false"][aria-controls~="${CSS.escape(e.id)}"]`)) return true;
    }
    return false;
  }

  // textsOf returns the lines of all visible texts.
  function textsOf() {
    const lines = [], walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT), shown = new Map();
    for (let node; (node = walker.nextNode());) {
      const element = node.parentElement;
      if (!node.data.trim() || /^(script|style|noscript|template|option|optgroup)$/.test(element.localName)) continue;
      if (!shown.has(element)) shown.set(element, isShown(element) ? clippersOf(element) : null);
      const clippers = shown.get(element);
      if (!clippers) continue;
      const range = document.createRange();
      range.selectNodeContents(node);
      for (const rect of range.getClientRects()) {
        if (isEmpty(rect)) continue;
        const full = ink(box(rect)), at = clippers.findIndex(scrolls);
        lines.push({
          node, element, text: node.data, box: full, clippers, overlay: overlayOf(element), plane: at < 0 ? null : clippers[at],
          inPlane: clipped(full, at < 0 ? clippers : clippers.slice(0, at), true), reached: clipped(full, clippers, true), seen: clipped(full, clippers, false).rest,
        });
      }
    }
    return lines;
  }

  function checkCut(lines) {
    const cutNodes = new Set();
    for (const line of lines) {
      const beyond = Math.max(0 - scrollX - line.box.left, 0 - scrollY - line.box.top); // a user cannot scroll there
      if ((line.reached.lost > slack || beyond > slack) && !cutNodes.has(line.node)) {
        cutNodes.add(line.node);
        if (!hasFullForm(line.text, line.element)) report("cut", line);
      }
    }
    for (const input of root.querySelectorAll("input[placeholder]")) {
      if (!isShown(input) || input.value) continue;
      const style = styleOf(input), context = document.createElement("canvas").getContext("2d");
      context.font = style.font;
      const room = input.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
      if (context.measureText(input.placeholder).width > room + slack && !hasFullForm(input.placeholder, input)) report("cut", { text: input.placeholder, element: input, box: box(input.getBoundingClientRect()) });
    }
  }

  function checkOverlaps(lines) {
    for (let i = 0; i < lines.length; i++) {
      const a = lines[i];
      for (let j = i + 1; j < lines.length; j++) {
        const b = lines[j];
        if (a.element === b.element || a.overlay !== b.overlay) continue;
        const [one, other] = a.plane === b.plane ? [a.inPlane.rest, b.inPlane.rest] : [a.seen, b.seen];
        const both = common(one, other);
        if (both.right - both.left > slack && both.bottom - both.top > slack && !isEmpty(one) && !isEmpty(other)) report("overlap", { ...a, box: one }, { ...b, box: other });
      }
    }
  }

  // hides reports whether an element that lies on another one hides it.
  function hides(hit, element) {
    for (let e = hit; e && !e.contains(element); e = e.parentElement) {
      const { backgroundColor, backgroundImage } = styleOf(e);
      if (/^(canvas|img|video|iframe|input|select|textarea)$/.test(e.localName) || backgroundImage !== "none" || /^rgb\(/.test(backgroundColor)) return true;
    }
    return false;
  }

  // checkCovered scrolls through the page. Texts count where no sticky part of it can be.
  function checkCovered(lines) {
    const waiting = new Set(lines.filter((line) => line.reached.lost <= slack));
    const last = Math.max(0, page.scrollHeight - innerHeight);
    for (let y = 0; ; y = Math.min(last, y + 0.5 * innerHeight)) {
      scrollTo(0, y);
      const moved = scrollY, from = y === 0 ? 0 : 0.3 * innerHeight, to = y === last ? innerHeight : 0.9 * innerHeight;
      for (const line of waiting) {
        const r = common(line.seen, { left: 0, right: innerWidth, top: from + moved, bottom: to + moved });
        if (isEmpty(r) || area(r) < 0.9 * area(line.seen)) continue;
        waiting.delete(line);
        const hit = document.elementFromPoint((r.left + r.right) / 2, (r.top + r.bottom) / 2 - moved);
        if (hit && !line.element.contains(hit) && hides(hit, line.element) && overlayOf(hit) === line.overlay) {
          report("covered", line, { text: hit.textContent, element: hit, box: box(hit.getBoundingClientRect()) });
        }
      }
      if (y === last) break;
    }
    scrollTo(0, 0);
  }

  function checkControls() {
    const scrolled = new Set();
    for (const control of root.querySelectorAll("a[href], button, input:not([type=hidden]), select, textarea, summary")) {
      if (!isShown(control)) continue;
      const about = { text: control.getAttribute("aria-label") || control.textContent || control.placeholder || control.localName, element: control, box: box(control.getBoundingClientRect()) };
      const clippers = clippersAround(control);
      control.scrollIntoView({ block: "center", inline: "center", behavior: "instant" });
      for (const e of clippers) {
        scrolled.add(e);
        if (cuts(e, "X") === "clip") e.scrollLeft = 0; // a script can scroll it, and a user cannot
        if (cuts(e, "Y") === "clip") e.scrollTop = 0;
      }
      const view = { left: 0, top: 0, right: innerWidth, bottom: innerHeight };
      const boxes = [...control.getClientRects()].map(box).filter((r) => !isEmpty(r));
      const seen = boxes.map((r) => common(clipped(r, clippers, false).rest, view)).sort((a, b) => area(b) - area(a));
      if (!seen.length || area(seen[0]) < 4) {
        report("hidden", about);
        continue;
      }
      const isBox = control.localName !== "a" || styleOf(control).display !== "inline";
      if (isBox && boxes.some((r) => clipped(r, clippers, true).lost > slack)) report("outside", about);
      const [r] = seen, hit = document.elementFromPoint((r.left + r.right) / 2, (r.top + r.bottom) / 2);
      if (hit && !control.contains(hit) && hit.closest("label")?.control !== control) {
        report("blocked", about, { text: hit.textContent, element: hit, box: box(hit.getBoundingClientRect()) });
      }
    }
    scrolled.forEach((e) => { e.scrollTop = 0; e.scrollLeft = 0; });
    scrollTo(0, 0);
  }

  // checkCanvases checks the texts that scripts draw. A text that ends with an ellipsis is not
  // cut off: the tables of a page have the names in its charts.
  function checkCanvases() {
    for (const canvas of root.querySelectorAll("canvas")) {
      if (!isShown(canvas)) continue;
      if (!window.canvasTexts) throw new Error("the texts of charts are not recorded");
      const texts = window.canvasTexts(canvas).map((text) => ({ ...text, element: canvas })), edge = box(canvas.getBoundingClientRect());
      texts.forEach((a, i) => {
        if (area(common(a.box, edge)) < 0.95 * area(a.box)) report("cut", a);
        for (const b of texts.slice(i + 1)) {
          const both = common(a.box, b.box);
          if (both.right - both.left > slack && both.bottom - both.top > slack) report("overlap", a, b);
        }
      });
    }
  }

  function checkSideways() {
    for (const e of [root, ...root.querySelectorAll("*")]) {
      const isFrame = e.matches("[role=table], pre") || e.querySelector("table, [role=table]");
      if (e !== document.body && isShown(e) && cuts(e, "X") === "scroll" && e.scrollWidth > e.clientWidth + 1 && !isFrame) report("sideways", { text: e.textContent, element: e, box: box(e.getBoundingClientRect()) });
    }
    if (page.scrollWidth <= width) return;
    let widest = document.body;
    for (const e of root.querySelectorAll("*")) {
      const beyond = (one) => one.getBoundingClientRect().right;
      if (isShown(e) && !clippersAround(e).length && beyond(e) > beyond(widest) + 0.5) widest = e;
    }
    report("sideways", { text: widest.textContent, element: widest, box: box(widest.getBoundingClientRect()) });
  }

  // checkGaps checks the parts of a name, each of which is in a box, and the names of a legend.
  function checkGaps() {
    for (const e of root.querySelectorAll(".legend > span")) {
      const content = document.createRange(), room = box(e.getBoundingClientRect());
      content.selectNodeContents(e);
      if (isShown(e) && room.right - content.getBoundingClientRect().right > 4 * slack) report("gap", { text: e.textContent, element: e, box: room });
    }
    for (const e of root.querySelectorAll(":is(.name, .in-text) > span")) {
      const text = document.createRange(), room = box(e.getBoundingClientRect());
      text.selectNodeContents(e);
      if (isShown(e) && styleOf(e).display !== "inline" && room.right - text.getBoundingClientRect().right > 4 * slack) report("gap", { text: e.textContent, element: e, box: room });
    }
  }

  checkSideways();
  checkGaps();
  const lines = textsOf();
  checkCut(lines);
  checkOverlaps(lines);
  checkCovered(lines);
  checkCanvases();
  checkControls();
  return findings;
}
