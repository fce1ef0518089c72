"use strict";
(() => {
  const { css } = window.closerlook;
  const COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"];
  const SHAPES = 4, RADIUS = 3.4, MARKER = 12, REACH = 14, MOST_ZOOM = 60, MOST_NAMED = 12;
  const FLAGS = { blocks: [1, "points that block merges"], conflict: [2, "points in conflict"], wrong: [4, "nearest cluster is wrong"] };
  const numbers = new Intl.NumberFormat("en", { maximumSignificantDigits: 4 });

  /** The numbers in a base64 text. */
  function decode(text, Kind) {
    return new Kind(Uint8Array.from(atob(text), (one) => one.charCodeAt(0)).buffer);
  }

  /** Add the outline of a shape around a place to the current path. */
  function trace(context, shape, x, y, r) {
    if (shape === 0) { context.moveTo(x + r, y); context.arc(x, y, r, 0, 2 * Math.PI); return; }
    const s = r * 0.92, t = r * 1.25;
    const corners = [null, [[-s, -s], [s, -s], [s, s], [-s, s]], [[0, -t], [t, t * 0.8], [-t, t * 0.8]], [[0, -t], [t, 0], [0, t], [-t, 0]]][shape];
    corners.forEach(([dx, dy], at) => (at ? context.lineTo(x + dx, y + dy) : context.moveTo(x + dx, y + dy)));
    context.closePath();
  }

  /** The corners of the convex hull of points in the plane, in order. points: [[x, y], …]. */
  function hull(points) {
    const sorted = [...points].sort((a, b) => a[0] - b[0] || a[1] - b[1]);
    const turn = (a, b, c) => (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]);
    const half = (order) => {
      const chain = [];
      for (const point of order) {
        while (chain.length > 1 && turn(chain.at(-2), chain.at(-1), point) <= 0) chain.pop();
        chain.push(point);
      }
      return chain.slice(0, -1);
    };
    return sorted.length < 3 ? sorted : [...half(sorted), ...half(sorted.reverse())];
  }

  const inside = (polygon, x, y) => {
    let is = false;
    for (let i = 0, j = polygon.length - 1; i < polygon.length; j = i++) {
      const [ax, ay] = polygon[i], [bx, by] = polygon[j];
      if (ay > y !== by > y && x < ((bx - ax) * (y - ay)) / (by - ay) + ax) is = !is;
    }
    return is;
  };

  /** A step of a scale: 1, 2 or 5 times a power of ten, at most `length`. */
  const roundStep = (length) => {
    const power = 10 ** Math.floor(Math.log10(length));
    return power * ([5, 2, 1].find((one) => one * power <= length) || 1);
  };

  /** The positions of a view at each snapshot, decoded when first used. */
  class Plane {
    constructor(source, rows, n) { Object.assign(this, { source, rows, n, decoded: [] }); }

    at(snapshot) {
      if (this.decoded[snapshot]) return this.decoded[snapshot];
      const { low, span, xy } = this.source, steps = decode(xy[snapshot], Uint16Array);
      const places = new Float32Array(2 * this.n).fill(NaN);
      for (let i = 0; i < steps.length / 2; i++) {
        const row = this.rows ? this.rows[i] : i;
        for (const axis of [0, 1]) places[2 * row + axis] = low[axis] + (steps[2 * i + axis] / 65535) * span[axis];
      }
      return (this.decoded[snapshot] = places);
    }
  }

  /** The points of one space over a training, drawn on a canvas. */
  class Plot {
    constructor(data, canvas) {
      Object.assign(this, { data, canvas });
      this.label = decode(data.label, Uint16Array);
      this.test = decode(data.test, Uint8Array);
      this.row = decode(data.row, Uint32Array);
      this.n = this.label.length;
      for (const name of ["word", "text"]) if (data[name]) data[name].at = decode(data[name].at, Uint32Array);
      if (data.text) data.text.marks = decode(data.text.marks, Uint32Array);
      this.rank = [];
      data.order.forEach((label, at) => { this.rank[label] = at; });
      this.members = data.labels.map(() => []);
      this.label.forEach((label, point) => this.members[label].push(point));
      Object.assign(this, { layer: 0, snapshot: 0, share: 0, view: "pca", margin: 0, flag: "", outlines: false, fitted: false });
      Object.assign(this, { hidden: new Set(), pinned: new Set(), selected: new Set(), focus: -1, outline: null, cache: new Map() });
      this.resetZoom();
      new ResizeObserver(() => this.resize()).observe(canvas);
      new MutationObserver(() => this.draw()).observe(document.documentElement, { attributeFilter: ["data-theme"] });
      matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
    }

    // ---- data ----

    colour(label) { return COLOURS[this.rank[label] % COLOURS.length]; }
    shape(label) { return Math.floor(this.rank[label] / COLOURS.length) % SHAPES; }
    name(point) { const { word, text } = this.data; return word ? word.texts[word.at[point]] : text ? text.texts[text.at[point]] : `row ${this.row[point]}`; }

    /** Something that is made once for each layer and snapshot. */
    once(key, create) {
      if (!this.cache.has(key)) this.cache.set(key, create());
      return this.cache.get(key);
    }

    plane() {
      const layer = this.data.layers[this.layer];
      return this.once(`plane ${this.layer} ${this.view} ${this.margin}`, () => {
        if (this.view !== "margin") return new Plane(layer[this.view], null, this.n);
        const margin = layer.margins[this.margin];
        return new Plane(margin, decode(margin.rows, Uint32Array), this.n);
      });
    }

    array(name, Kind, snapshot = this.snapshot) {
      const layer = this.data.layers[this.layer];
      return this.once(`${name} ${this.layer} ${snapshot}`, () => decode(name === "moved" ? layer.moved.at[snapshot] : layer[name][snapshot], Kind));
    }

    clusters() {
      const own = this.data.layers[this.layer].clusters[this.snapshot];
      return this.once(`clusters ${this.layer} ${this.snapshot}`, () => ({ label: decode(own.label, Uint16Array), size: decode(own.size, Uint32Array), separable: own.separable }));
    }

    moved(point) { return (this.array("moved", Uint16Array)[point] / 65535) * this.data.layers[this.layer].moved.most; }

    /** The positions now; between two snapshots while it plays. */
    places() {
      const plane = this.plane(), here = plane.at(this.snapshot);
      if (!this.share) return here;
      const next = plane.at(this.snapshot + 1);
      return here.map((value, at) => value + this.share * (next[at] - value));
    }

    isInside(point) { return this.isShown(point) && this.px[point] >= 0 && this.px[point] <= this.width && this.py[point] >= 0 && this.py[point] <= this.height; }
    isShown(point) { return !this.hidden.has(this.label[point]) && !Number.isNaN(this.px[point]); }

    // ---- drawing ----

    resize() {
      const ratio = window.devicePixelRatio || 1, { clientWidth, clientHeight } = this.canvas;
      Object.assign(this.canvas, { width: Math.round(clientWidth * ratio), height: Math.round(clientHeight * ratio) });
      Object.assign(this, { width: clientWidth, height: clientHeight, ratio });
      this.draw();
    }

    /** The limits of both axes: of all snapshots, or of the points that are shown now. */
    limits(places) {
      if (!this.fitted) { const { low, span } = this.plane().source; return [[low[0], low[0] + span[0]], [low[1], low[1] + span[1]]]; }
      return [0, 1].map((axis) => {
        const values = Array.from({ length: this.n }, (_, point) => (this.hidden.has(this.label[point]) ? NaN : places[2 * point + axis])).filter((value) => !Number.isNaN(value));
        const [low, high] = [Math.min(...values), Math.max(...values)];
        return values.length && high > low ? [low, high] : [low - 0.5 || -0.5, low + 0.5 || 0.5];
      });
    }

    /** From positions to pixels: both axes have one scale, except in the margin view. */
    scale(places) {
      const [xs, ys] = this.limits(places), pad = 22, foot = 34;
      const wide = this.width - 2 * pad, high = this.height - pad - foot;
      let [sx, sy] = [wide / (xs[1] - xs[0]), high / (ys[1] - ys[0])];
      if (this.view !== "margin") sx = sy = Math.min(sx, sy);
      const [mx, my] = [(xs[0] + xs[1]) / 2, (ys[0] + ys[1]) / 2], { k, x: dx, y: dy } = this.zoomed;
      this.toX = (x) => k * (this.width / 2 + (x - mx) * sx) + dx;
      this.toY = (y) => k * (pad + high / 2 - (y - my) * sy) + dy;
      this.sx = k * sx;
    }

    // ---- zoom: a place of the whole picture is shown at k times that place, moved by x and y ----

    resetZoom() { this.zoomed = { k: 1, x: 0, y: 0 }; }

    zoomBy(factor, x, y) {
      const { zoomed } = this, k = Math.max(1, Math.min(MOST_ZOOM, zoomed.k * factor)), real = k / zoomed.k;
      Object.assign(zoomed, { k, x: x - real * (x - zoomed.x), y: y - real * (y - zoomed.y) });
      this.panBy(0, 0);
    }

    /** Move the picture; its edges never come inside the canvas. */
    panBy(dx, dy) {
      const { zoomed } = this, within = (value, room) => Math.min(0, Math.max(room * (1 - zoomed.k), value));
      Object.assign(zoomed, { x: within(zoomed.x + dx, this.width), y: within(zoomed.y + dy, this.height) });
    }

    draw() {
      if (!this.width) return;
      const context = this.canvas.getContext("2d"), places = this.places();
      this.page = css("--page");
      this.scale(places);
      this.px = new Float32Array(this.n);
      this.py = new Float32Array(this.n);
      for (let i = 0; i < this.n; i++) { this.px[i] = this.toX(places[2 * i]); this.py[i] = this.toY(places[2 * i + 1]); }
      context.reset();
      context.scale(this.ratio, this.ratio);
      context.font = `12px ${css("--font")}`;
      if (this.view === "margin") this.drawGap(context); else if (this.view === "pca") this.drawScale(context);
      if (this.outlines && !this.share) this.drawOutlines(context);
      this.drawPoints(context);
      if (this.selected.size <= MOST_NAMED) this.selected.forEach((point) => this.drawName(context, point));
      this.pinned.forEach((point) => this.drawPath(context, point));
      this.ring(context, this.focus, 9, css("--text"));
      this.drawSelection(context);
    }

    drawPoints(context) {
      const bit = this.flag ? FLAGS[this.flag][0] : 0, flags = bit ? this.array("flags", Uint8Array) : null;
      const isMarked = (point) => (bit ? (flags[point] & bit) > 0 : true) && (this.selected.size ? this.selected.has(point) : true);
      const isPlain = !bit && !this.selected.size;
      for (const marked of isPlain ? [true] : [false, true]) {
        for (const label of [...this.data.order].reverse()) {
          if (this.hidden.has(label)) continue;
          for (const test of [0, 1]) this.drawGroup(context, label, (point) => this.test[point] === test && (isPlain || isMarked(point) === marked), test, marked ? 1 : 0.16);
        }
      }
    }

    drawGroup(context, label, isIn, isHollow, alpha) {
      const image = this.marker(label, isHollow), half = MARKER / 2;
      context.globalAlpha = alpha;
      for (const point of this.members[label]) if (isIn(point) && !Number.isNaN(this.px[point])) context.drawImage(image, this.px[point] - half, this.py[point] - half, MARKER, MARKER);
      context.globalAlpha = 1;
    }

    /** The image of a point: copying it is faster than drawing its shape, and overlapping points stay visible. */
    marker(label, isHollow) {
      const { ratio, page } = this;
      return this.once(`marker ${label} ${isHollow} ${ratio} ${page}`, () => {
        const image = document.createElement("canvas"), side = Math.ceil(MARKER * ratio);
        Object.assign(image, { width: side, height: side });
        const context = image.getContext("2d");
        context.scale(side / MARKER, side / MARKER);
        trace(context, this.shape(label), MARKER / 2, MARKER / 2, RADIUS);
        Object.assign(context, { fillStyle: this.colour(label), strokeStyle: isHollow ? this.colour(label) : page, lineWidth: isHollow ? 1.6 : 0.8 });
        if (!isHollow) { context.globalAlpha = 0.85; context.fill(); }
        context.stroke();
        return image;
      });
    }

    drawOutlines(context) {
      const nearest = this.array("nearest", Uint32Array), groups = new Map();
      for (let i = 0; i < this.n; i++) {
        if (this.test[i] || !this.isShown(i)) continue;
        if (!groups.has(nearest[i])) groups.set(nearest[i], []);
        groups.get(nearest[i]).push([this.px[i], this.py[i]]);
      }
      const { label } = this.clusters();
      for (const [cluster, points] of groups) {
        const corners = hull(points);
        if (corners.length < 3) continue;
        context.beginPath();
        corners.forEach(([x, y], at) => (at ? context.lineTo(x, y) : context.moveTo(x, y)));
        context.closePath();
        context.strokeStyle = context.fillStyle = this.colour(label[cluster]);
        context.globalAlpha = 0.06; context.fill();
        context.globalAlpha = 0.7; context.lineWidth = 1; context.stroke();
        context.globalAlpha = 1;
      }
    }

    /** The path of a point over all snapshots, and its name. */
    drawPath(context, point) {
      if (!this.isShown(point)) return;
      const plane = this.plane(), text = css("--text");
      context.strokeStyle = context.fillStyle = text;
      context.lineWidth = 1.5;
      context.beginPath();
      this.data.snapshots.forEach((_, at) => {
        const places = plane.at(at), [x, y] = [this.toX(places[2 * point]), this.toY(places[2 * point + 1])];
        if (at) context.lineTo(x, y); else context.moveTo(x, y);
      });
      context.stroke();
      this.data.snapshots.forEach((_, at) => {
        const places = plane.at(at);
        context.beginPath();
        context.arc(this.toX(places[2 * point]), this.toY(places[2 * point + 1]), at === this.snapshot ? 4 : 2, 0, 2 * Math.PI);
        context.fill();
      });
      this.ring(context, point, 7, text);
      this.drawName(context, point);
    }

    drawName(context, point) {
      if (this.isInside(point)) this.write(context, shorten(this.name(point), 28), this.px[point] + 11, this.py[point] - 9);
    }

    ring(context, point, radius, colour) {
      if (point < 0 || !this.isInside(point)) return;
      context.beginPath();
      context.arc(this.px[point], this.py[point], radius, 0, 2 * Math.PI);
      Object.assign(context, { strokeStyle: colour, lineWidth: 2 });
      context.stroke();
    }

    /** Text with a halo, inside the canvas. */
    write(context, text, x, y, align = "left") {
      const width = context.measureText(text).width;
      const left = Math.max(4, Math.min(this.width - width - 4, align === "center" ? x - width / 2 : x));
      Object.assign(context, { textAlign: "left", lineWidth: 4, lineJoin: "round", strokeStyle: this.page, fillStyle: css("--text") });
      context.strokeText(text, left, Math.max(14, y));
      context.fillText(text, left, Math.max(14, y));
    }

    /** The gap between two labels: its width is the distance of their hulls. */
    drawGap(context) {
      const gap = this.data.layers[this.layer].margins[this.margin].gaps[this.snapshot], foot = this.height - 26;
      const step = roundStep(Math.max(90 / this.sx, 1e-12)), first = Math.ceil(-this.toX(0) / this.sx / step) * step;
      Object.assign(context, { strokeStyle: css("--faint"), fillStyle: css("--soft"), lineWidth: 1, textAlign: "center" });
      context.beginPath();
      context.moveTo(12, foot + 0.5); context.lineTo(this.width - 12, foot + 0.5);
      for (let x = first; this.toX(x) < this.width - 12; x += step) {
        if (this.toX(x) < 12) continue;
        context.moveTo(this.toX(x), foot); context.lineTo(this.toX(x), foot + 5);
        context.fillText(numbers.format(Math.abs(x) < step / 2 ? 0 : x), this.toX(x), foot + 18);
      }
      context.stroke();
      if (this.share) return;
      if (gap.verdict !== "separable") { this.write(context, gap.verdict === "overlapping" ? "the hulls overlap: no gap" : "undecided: no gap proved", this.toX(0), 18, "center"); return; }
      const [left, right] = [this.toX(-gap.edge), this.toX(gap.edge)];
      context.globalAlpha = 0.16; context.fillStyle = css("--accent");
      context.fillRect(left, 26, right - left, foot - 26);
      context.globalAlpha = 1; context.strokeStyle = css("--accent");
      context.beginPath();
      for (const x of [left, right]) { context.moveTo(x, 26); context.lineTo(x, foot); }
      context.stroke();
      this.write(context, `distance ${numbers.format(gap.distance)}`, this.toX(0), 18, "center");
    }

    /** A bar that shows a length. */
    drawScale(context) {
      const length = roundStep(120 / this.sx), y = this.height - 14;
      Object.assign(context, { strokeStyle: css("--soft"), fillStyle: css("--soft"), lineWidth: 1.5, textAlign: "left" });
      context.beginPath();
      context.moveTo(14, y - 4); context.lineTo(14, y); context.lineTo(14 + length * this.sx, y); context.lineTo(14 + length * this.sx, y - 4);
      context.stroke();
      context.fillText(numbers.format(length), 20 + length * this.sx, y + 1);
    }

    /** The outline of the selection that is being drawn with the pointer. */
    drawSelection(context) {
      if (!this.outline) return;
      context.beginPath();
      this.outline.forEach(([x, y], at) => (at ? context.lineTo(x, y) : context.moveTo(x, y)));
      context.closePath();
      Object.assign(context, { strokeStyle: css("--accent"), fillStyle: css("--accent"), lineWidth: 1.5 });
      context.stroke();
      context.globalAlpha = 0.1; context.fill(); context.globalAlpha = 1;
    }

    // ---- looking up ----

    nearest(x, y, reach = REACH) {
      let best = -1, least = reach * reach;
      for (let i = 0; i < this.n; i++) {
        const distance = (this.px[i] - x) ** 2 + (this.py[i] - y) ** 2;
        if (distance < least && this.isShown(i)) { best = i; least = distance; }
      }
      return best;
    }

    /** The nearest point in a direction from the current one. */
    neighbour(dx, dy) {
      if (this.focus < 0 || !this.isInside(this.focus)) return this.nearest(this.width / 2, this.height / 2, Infinity);
      let best = this.focus, least = Infinity;
      for (let i = 0; i < this.n; i++) {
        const [x, y] = [this.px[i] - this.px[this.focus], this.py[i] - this.py[this.focus]];
        const along = x * dx + y * dy, cost = along + 2 * Math.abs(x * dy - y * dx);
        if (along > 0.5 && cost < least && this.isInside(i)) { best = i; least = cost; }
      }
      return best;
    }

    /** The points inside an outline. */
    within(polygon) { return Array.from(this.label.keys()).filter((point) => this.isShown(point) && inside(polygon, this.px[point], this.py[point])); }

    /** What is known about a point at this snapshot, as a row of a table. */
    record(point) {
      const { data } = this, cluster = this.array("nearest", Uint32Array)[point], label = this.clusters().label[cluster], places = this.plane().at(this.snapshot);
      const { text } = data, plain = (value) => (Number.isNaN(value) ? null : value);
      return {
        row: this.row[point], split: this.test[point] ? "test" : "train", word: data.word ? this.name(point) : null, text: text ? text.texts[text.at[point]] : null, label: data.labels[this.label[point]],
        cluster_label: data.labels[label], right: label === this.label[point], moved: this.moved(point), layer: data.layers[this.layer].number, snapshot: data.snapshots[this.snapshot],
        view: this.view, x: plain(places[2 * point]), y: plain(places[2 * point + 1]),
      };
    }
  }

  const shorten = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);
  Object.assign(window.closerlook, { Plot, FLAGS, numbers }); // for explorer.js
})();
