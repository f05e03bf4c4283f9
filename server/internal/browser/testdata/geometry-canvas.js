// It runs before the scripts of a page. window.canvasTexts returns the texts that a canvas shows,
// each with its box, for the check of the geometry.
(() => {
  const drawn = new WeakMap();
  const { fillText, clearRect } = CanvasRenderingContext2D.prototype;
  const width = Object.getOwnPropertyDescriptor(HTMLCanvasElement.prototype, "width");
  Object.defineProperty(HTMLCanvasElement.prototype, "width", { ...width, set(value) { drawn.delete(this); width.set.call(this, value); } }); // that clears it
  CanvasRenderingContext2D.prototype.clearRect = function (x, y, w, h) {
    const { a, d } = this.getTransform();
    if (x <= 0 && y <= 0 && w * a >= this.canvas.width - 1 && h * d >= this.canvas.height - 1) drawn.delete(this.canvas);
    return clearRect.call(this, x, y, w, h);
  };
  CanvasRenderingContext2D.prototype.fillText = function (text, x, y, ...rest) {
    const m = this.measureText(text), transform = this.getTransform();
    const [from, to] = [new DOMPoint(x - m.actualBoundingBoxLeft, y - m.actualBoundingBoxAscent), new DOMPoint(x + m.actualBoundingBoxRight, y + m.actualBoundingBoxDescent)].map((p) => p.matrixTransform(transform));
    if (!drawn.has(this.canvas)) drawn.set(this.canvas, []);
    drawn.get(this.canvas).push({ text: String(text), left: from.x, top: from.y, right: to.x, bottom: to.y });
    return fillText.call(this, text, x, y, ...rest);
  };
  window.canvasTexts = (canvas) => {
    const box = canvas.getBoundingClientRect(), ratio = box.width / canvas.width;
    return (drawn.get(canvas) ?? []).map(({ text, left, top, right, bottom }) => ({
      text, box: { left: box.left + ratio * left, top: box.top + ratio * top, right: box.left + ratio * right, bottom: box.top + ratio * bottom },
    }));
  };
})();
