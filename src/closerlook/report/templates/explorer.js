"use strict";
(() => {
  const { make, named, read, whenUnpacked, counted, downloadCsv, Plot, FLAGS, numbers } = window.closerlook;
  const MOST_LISTED = 300, EXCERPT = 130, ZOOM_STEP = 1.4, PAN_STEP = 60;
  const KEYS = "Arrow keys move from point to point, Enter pins a point, plus and minus zoom, Shift with an arrow key moves the view, 0 shows all, Escape clears.";

  /** A plot with its controls, search, selection and legend. */
  class Explorer {
    constructor(section, data) {
      Object.assign(this, { section, data });
      this.canvas = make("canvas", { tabindex: "0", role: "application", "aria-roledescription": "scatter plot", "aria-label": `Points of ${this.data.title}. ${KEYS}` });
      this.plot = new Plot(this.data, this.canvas);
      Object.assign(this, { mode: "box", drag: null, fingers: new Map() });
      this.build();
      this.show();
    }

    // ---- controls ----

    build() {
      const { data } = this, many = data.snapshots.length > 1, margins = data.layers[0].margins;
      this.tip = make("div", { class: "tip", role: "status", hidden: "" });
      this.status = make("p", { class: "status", role: "status" });
      this.slider = make("input", { type: "range", min: 0, max: data.snapshots.length - 1, value: 0, step: 1, "aria-label": "snapshot" });
      this.output = make("output");
      this.play = make("button", { type: "button" }, "▶ Play");
      const views = [["pca", "PCA"], ...(margins.length ? [["margin", "Margin of two labels"]] : []), ...(data.layers[0].umap ? [["umap", "UMAP"]] : [])];
      const controls = make("div", { class: "controls" },
        this.choice("view", views, this.plot.view, (value) => { this.plot.view = value; this.pair.hidden = value !== "margin"; this.plot.resetZoom(); this.show(); }),
        (this.layers = this.select("layer", data.layers.map((one, at) => [at, String(one.number)]), (value) => this.goto(Number(value), this.plot.snapshot))),
        (this.pair = this.select("labels", margins.map((one, at) => [at, `${one.first} – ${one.second}`]), (value) => { this.plot.margin = Number(value); this.plot.resetZoom(); this.show(); })),
        this.select("highlight", [["", "nothing"], ...Object.entries(FLAGS).map(([key, [, text]]) => [key, text])], (value) => { this.plot.flag = value; this.show(); }),
        this.check("cluster outlines (projected)", (on) => { this.plot.outlines = on; this.plot.draw(); }),
        many ? this.check("fit axes to snapshot", (on) => { this.plot.fitted = on; this.plot.draw(); }) : null);
      this.pair.hidden = true;
      this.layers.hidden = data.layers.length < 2;
      const time = make("div", { class: "time" }, this.play, this.slider, this.output);
      time.hidden = !many;
      const hint = make("p", { class: "hint" }, "Point at a word to read it; click to pin it and its path; drag to select. Zoom with Ctrl and the wheel, or two fingers; then drag with Shift to move the view.");
      const plot = make("div", { class: "plot" }, this.canvas, this.tip, this.zoomButtons(), time, this.status, hint);
      this.section.append(controls, make("div", { class: "desk" }, plot, this.panel()), this.legend());
      this.slider.addEventListener("input", () => { this.stop(); this.step(Number(this.slider.value)); });
      this.play.addEventListener("click", () => (this.timer ? this.stop() : this.start()));
      this.listen();
    }

    zoomButtons() {
      const button = (text, label, act) => { const one = make("button", { type: "button", title: label, "aria-label": label }, text); one.addEventListener("click", act); return one; };
      const middle = () => [this.plot.width / 2, this.plot.height / 2];
      this.all = button("all", "Show all points", () => this.zoom(0));
      this.all.disabled = true;
      return make("div", { class: "zooms", role: "group", "aria-label": "Zoom" }, button("+", "Zoom in", () => this.zoom(ZOOM_STEP, ...middle())), button("−", "Zoom out", () => this.zoom(1 / ZOOM_STEP, ...middle())), this.all);
    }

    /** Zoom by a factor around a place on the canvas; 0 shows all points again. */
    zoom(factor, x, y) {
      if (factor) this.plot.zoomBy(factor, x, y); else this.plot.resetZoom();
      this.moved();
    }

    /** Draw after the view has moved. */
    moved() {
      this.all.disabled = this.plot.zoomed.k === 1;
      this.tip.hidden = true;
      this.plot.draw();
    }

    choice(name, options, chosen, act) {
      const group = `${this.section.dataset.source}-${name}`;
      const box = make("fieldset", { class: "tabs" }, make("legend", {}, name), ...options.map(([value, text]) => {
        const input = make("input", { type: "radio", name: group, value, checked: value === chosen ? "" : null });
        input.addEventListener("change", () => act(value));
        return make("label", {}, input, make("span", {}, text));
      }));
      box.hidden = options.length < 2;
      return box;
    }

    select(name, options, act) {
      const select = make("select", {}, ...options.map(([value, text]) => make("option", { value }, text)));
      select.addEventListener("change", () => act(select.value));
      return make("label", { class: "pick" }, `${name} `, select);
    }

    check(text, act) {
      const input = make("input", { type: "checkbox" });
      input.addEventListener("change", () => act(input.checked));
      return make("label", { class: "pick" }, input, text);
    }

    panel() {
      this.search = make("input", { type: "search", placeholder: this.data.word ? "search a word" : "search a text", "aria-label": "search" });
      this.count = make("h3", { role: "status" });
      this.list = make("ul", { class: "side-list", tabindex: "-1" });
      this.export = make("button", { type: "button" }, "Export CSV");
      this.clear = make("button", { type: "button" }, "Clear");
      this.search.addEventListener("input", () => this.find(this.search.value.trim().toLowerCase()));
      this.export.addEventListener("click", () => downloadCsv([...this.plot.selected].map((point) => this.plot.record(point)), "selected-points"));
      this.clear.addEventListener("click", () => { this.search.value = ""; this.plot.pinned.clear(); this.choose([]); });
      return make("div", { class: "panel" }, make("div", { class: "panel-in" }, this.search,
        this.choice("drag", [["box", "Box"], ["lasso", "Lasso"], ["move", "Move"]], "box", (value) => { this.mode = value; this.canvas.classList.toggle("moving", value === "move"); }),
        this.count, make("div", { class: "actions" }, this.export, this.clear), this.list));
    }

    legend() {
      const { labels, order } = this.data;
      const all = make("button", { type: "button", class: "chip all" }, "all"), none = make("button", { type: "button", class: "chip all" }, "none");
      const chips = order.map((label) => {
        const chip = make("button", { type: "button", class: "chip", "data-label": labels[label], title: labels[label] }, this.swatch(label), make("b", {}, named(labels[label])), make("em", {}, String(this.plot.members[label].length)));
        chip.addEventListener("click", () => { if (!this.plot.hidden.delete(label)) this.plot.hidden.add(label); press(); });
        return chip;
      });
      const press = () => { chips.forEach((chip, at) => chip.setAttribute("aria-pressed", !this.plot.hidden.has(order[at]))); this.plot.draw(); };
      all.addEventListener("click", () => { this.plot.hidden.clear(); press(); });
      none.addEventListener("click", () => { this.plot.hidden = new Set(order); press(); });
      press();
      return make("div", { class: "toggles", role: "group", "aria-label": "Labels shown" }, all, none, ...chips);
    }

    /** The shape of a label in its colour. */
    swatch(label) {
      const svg = (tag, attributes) => { const one = document.createElementNS("http://www.w3.org/2000/svg", tag); Object.entries(attributes).forEach(([name, value]) => one.setAttribute(name, value)); return one; };
      const shapes = ["M10.6 6A4.6 4.6 0 1 1 1.4 6A4.6 4.6 0 1 1 10.6 6", "M2 2H10V10H2Z", "M6 1L11 10H1Z", "M6 .5L11.5 6L6 11.5L.5 6Z"];
      const image = svg("svg", { viewBox: "0 0 12 12", "aria-hidden": "true" });
      image.append(svg("path", { d: shapes[this.plot.shape(label)], fill: this.plot.colour(label) }));
      return image;
    }

    /** Draw everything, and say in words what is shown. */
    show() {
      const { data } = this, name = data.snapshots[this.plot.snapshot], { label, separable } = this.plot.clusters(), layer = data.layers[this.plot.layer];
      const known = new Set(label).size;
      const sample = data.measured < data.examples ? ` in a sample of ${data.measured.toLocaleString("en")} of ${counted(data.examples, "example")}` : "";
      const parts = [`${counted(label.length, "cluster")} of ${counted(known, "label")}${sample}, ${separable ? "" : "not "}linearly separable.`];
      if (this.plot.view === "pca") parts.push(`Variance shown: ${layer.pca.explained.map((one) => `${Math.round(100 * one)}\u00a0%`).join(" and ")}.`);
      if (this.plot.view === "margin") {
        const { first, second, gaps } = layer.margins[this.plot.margin], gap = gaps[this.plot.snapshot];
        const distance = `distance of the hulls ${numbers.format(gap.distance)}${gap.radii === null ? "" : ` (${numbers.format(gap.radii)} RMS radii)`}`;
        parts.unshift(`${second} (left) and ${first} (right): ${gap.verdict === "separable" ? `separable, ${distance}.` : `${gap.verdict}.`}`);
      }
      if (this.plot.flag) {
        const flags = this.plot.array("flags", Uint8Array), [bit, text] = FLAGS[this.plot.flag];
        parts.push(`${flags.filter((one) => one & bit).length.toLocaleString("en")} shown points: ${text}.`);
      }
      this.output.textContent = `${name}, ${this.plot.snapshot + 1} of ${data.snapshots.length}`;
      this.slider.value = this.plot.snapshot;
      this.slider.setAttribute("aria-valuetext", name);
      this.status.textContent = `${layer.number === null ? "" : `Layer ${layer.number}, `}${name}: ${parts.join(" ")}`;
      this.tip.hidden = true;
      this.fill();
      this.plot.draw();
    }

    /** Show another layer and snapshot. */
    goto(layer, snapshot) {
      this.stop();
      if (layer !== this.plot.layer) this.plot.resetZoom();
      this.plot.layer = layer;
      this.layers.querySelector("select").value = layer;
      this.step(snapshot);
    }

    step(snapshot) { Object.assign(this.plot, { snapshot, share: 0 }); this.show(); }

    start() {
      const last = this.data.snapshots.length - 1, still = matchMedia("(prefers-reduced-motion: reduce)").matches, pace = 700;
      if (this.plot.snapshot === last) this.step(0);
      this.play.textContent = "❚❚ Pause";
      let since = performance.now();
      const turn = (now) => {
        const share = (now - since) / pace;
        if (share >= 1) { since = now; this.step(this.plot.snapshot + 1); } else if (!still) { this.plot.share = Math.max(0, share); this.plot.draw(); }
        if (this.plot.snapshot >= last) this.stop(); else this.timer = requestAnimationFrame(turn);
      };
      this.timer = requestAnimationFrame(turn);
    }

    stop() {
      cancelAnimationFrame(this.timer);
      this.timer = null;
      this.play.textContent = "▶ Play";
      if (this.plot.share) this.step(this.plot.snapshot);
    }

    // ---- pointing, selecting, searching ----

    listen() {
      const place = (event) => { const box = this.canvas.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
      const { canvas, fingers } = this;
      canvas.addEventListener("pointerdown", (event) => {
        if (event.button > 1) return;
        const at = place(event), isMove = this.mode === "move" || event.shiftKey || event.button === 1;
        fingers.set(event.pointerId, at);
        canvas.setPointerCapture(event.pointerId);
        if (fingers.size > 1) { this.drag = this.plot.outline = null; this.plot.draw(); return; }
        this.drag = { from: at, last: at, polygon: [at], moved: false, isMove };
      });
      canvas.addEventListener("pointermove", (event) => {
        const [x, y] = place(event);
        if (fingers.size > 1 && fingers.has(event.pointerId)) { this.pinch(event.pointerId, [x, y]); return; }
        if (!this.drag) { if (!fingers.size) this.point(this.plot.nearest(x, y)); return; }
        this.pull(x, y);
      });
      canvas.addEventListener("pointerup", (event) => {
        const { drag } = this, [x, y] = place(event);
        fingers.delete(event.pointerId);
        this.drag = this.plot.outline = null;
        if (!drag) return;
        if (!drag.moved) { const found = this.plot.nearest(x, y); this.point(found); if (found >= 0) this.pin(found); return; }
        if (drag.isMove) return;
        this.search.value = "";
        this.choose(this.plot.within(drag.polygon));
      });
      canvas.addEventListener("pointercancel", (event) => { fingers.delete(event.pointerId); this.drag = this.plot.outline = null; this.plot.draw(); });
      canvas.addEventListener("pointerleave", () => { if (!this.drag) this.point(-1); });
      canvas.addEventListener("wheel", (event) => {
        if (!event.ctrlKey && !event.metaKey) return; // the wheel alone scrolls the page
        event.preventDefault();
        this.zoom(Math.exp(-Math.max(-60, Math.min(60, event.deltaY)) / 150), ...place(event));
      }, { passive: false });
      canvas.addEventListener("blur", () => this.point(-1));
      canvas.addEventListener("keydown", (event) => this.key(event));
    }

    /** Go on with a drag: move the view, or draw the outline of a selection. */
    pull(x, y) {
      const { drag } = this, [ax, ay] = drag.from;
      drag.moved ||= Math.hypot(x - ax, y - ay) > 5;
      if (drag.isMove) { this.plot.panBy(x - drag.last[0], y - drag.last[1]); drag.last = [x, y]; this.moved(); return; }
      if (this.mode === "lasso") drag.polygon.push([x, y]); else drag.polygon = [[ax, ay], [x, ay], [x, y], [ax, y]];
      this.tip.hidden = true;
      this.plot.outline = drag.moved ? drag.polygon : null;
      this.plot.draw();
    }

    /** Two fingers zoom by the change of their distance, and move the view with them. */
    pinch(finger, to) {
      const [other] = [...this.fingers].filter(([id]) => id !== finger).map(([, at]) => at), from = this.fingers.get(finger);
      const apart = (at) => Math.hypot(at[0] - other[0], at[1] - other[1]) || 1, middle = (at) => [(at[0] + other[0]) / 2, (at[1] + other[1]) / 2];
      this.fingers.set(finger, to);
      this.plot.panBy(middle(to)[0] - middle(from)[0], middle(to)[1] - middle(from)[1]);
      this.zoom(apart(to) / apart(from), ...middle(to));
    }

    key(event) {
      const sides = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }, side = sides[event.key];
      if (side && event.shiftKey) { this.plot.panBy(-PAN_STEP * side[0], -PAN_STEP * side[1]); this.moved(); }
      else if (side) this.point(this.plot.neighbour(...side));
      else if (["+", "=", "-", "0"].includes(event.key) && !event.ctrlKey && !event.metaKey) this.zoom({ "-": 1 / ZOOM_STEP, 0: 0 }[event.key] ?? ZOOM_STEP, this.plot.width / 2, this.plot.height / 2);
      else if ((event.key === "Enter" || event.key === " ") && this.plot.focus >= 0) this.pin(this.plot.focus);
      else if (event.key === "Escape") this.clear.click();
      else return;
      event.preventDefault();
    }

    /** Show what is known about a point; -1 for none. */
    point(point) {
      if (point === this.plot.focus && this.tip.hidden === point < 0) return;
      this.plot.focus = point;
      this.tip.hidden = point < 0 || !this.plot.isShown(point);
      this.plot.draw();
      if (this.tip.hidden) return;
      const { labels } = this.data, cluster = this.plot.array("nearest", Uint32Array)[point], { label, size } = this.plot.clusters();
      const isRight = label[cluster] === this.plot.label[point], flags = this.plot.array("flags", Uint8Array)[point];
      const where = this.plot.test[point] ? [`test · nearest cluster: `, named(labels[label[cluster]]), ` (${counted(size[cluster], "point")}), `, make("span", { class: isRight ? "right" : "wrong" }, isRight ? "✓ right" : "✕ wrong")] : [`train · in a cluster of ${counted(size[cluster], "point")}`];
      const more = [flags & 1 ? "blocks a merge" : "", flags & 2 ? "in conflict with another label" : "", this.plot.snapshot ? `moved ${numbers.format(this.plot.moved(point))} RMS radii` : ""].filter(Boolean);
      this.tip.replaceChildren(make("p", {}, this.excerpt(point)), make("p", {}, this.swatch(this.plot.label[point]), " ", make("strong", {}, named(labels[this.plot.label[point]]))), make("p", { class: "meta" }, ...where), more.length ? make("p", { class: "meta" }, more.join(" · ")) : "");
      const left = this.plot.px[point] + 16 + this.tip.offsetWidth > this.plot.width ? this.plot.px[point] - 16 - this.tip.offsetWidth : this.plot.px[point] + 16;
      Object.assign(this.tip.style, { left: `${Math.max(4, Math.min(left, this.plot.width - this.tip.offsetWidth - 4))}px`, top: `${Math.max(4, Math.min(this.plot.py[point] + 14, this.plot.height - this.tip.offsetHeight - 4))}px` });
    }

    /** The word in its sentence, shortened around the word. */
    excerpt(point) {
      const { text } = this.data;
      if (!text) return make("strong", {}, named(this.plot.name(point)));
      const full = text.texts[text.at[point]], marks = text.marks;
      const spans = [0, 2].map((at) => [marks[4 * point + at], marks[4 * point + at + 1]]).filter(([start, stop]) => stop > start).sort((a, b) => a[0] - b[0]);
      const from = Math.max(0, (spans.length ? spans[0][0] : 0) - EXCERPT), to = Math.min(full.length, (spans.length ? spans.at(-1)[1] : 0) + EXCERPT);
      const parts = [];
      let at = from;
      for (const [start, stop] of spans) { parts.push(full.slice(at, start), make("mark", {}, full.slice(start, stop))); at = stop; }
      parts.push(full.slice(at, to));
      return make("bdi", {}, from ? "… " : "", ...parts, to < full.length ? " …" : "");
    }

    pin(point) {
      if (!this.plot.pinned.delete(point)) this.plot.pinned.add(point);
      const isListed = this.plot.selected.size && document.activeElement?.closest("li"); // the button keeps the focus
      if (!isListed) this.fill();
      this.plot.draw();
      this.section.dispatchEvent(new CustomEvent("pin", { detail: point }));
    }

    find(query) {
      this.choose(query ? Array.from(this.plot.label.keys()).filter((point) => this.plot.name(point).toLowerCase().includes(query)) : []);
    }

    choose(points) {
      this.plot.selected = new Set(points);
      this.fill();
      this.plot.draw();
    }

    /** List the selected points; the pinned ones if none is selected. */
    fill() {
      const points = this.plot.selected.size ? [...this.plot.selected] : [...this.plot.pinned], query = this.search.value.trim();
      const found = query && !this.plot.selected.size ? `No point matches “${query}”` : `${counted(points.length, "point")} ${this.plot.selected.size ? "selected" : "pinned"}`;
      this.count.textContent = points.length > MOST_LISTED ? `${found}; the first ${MOST_LISTED} are listed` : found;
      this.export.disabled = !this.plot.selected.size;
      this.clear.disabled = !points.length && !query;
      const items = points.slice(0, MOST_LISTED).map((point) => {
        const button = make("button", { type: "button", "aria-pressed": this.plot.pinned.has(point) }, named(this.plot.name(point)), make("span", { class: "meta" }, this.data.labels[this.plot.label[point]]));
        button.addEventListener("click", () => { this.pin(point); button.setAttribute("aria-pressed", this.plot.pinned.has(point)); });
        for (const event of ["pointerenter", "focus"]) button.addEventListener(event, () => this.point(point));
        for (const event of ["pointerleave", "blur"]) button.addEventListener(event, () => this.point(-1));
        return make("li", {}, button);
      });
      this.list.replaceChildren(...(items.length ? items : [make("li", { class: "empty" }, "Search, or drag over points, to list them here. Click a point to pin its path.")]));
    }
  }

  whenUnpacked(() => document.querySelectorAll(".explorer").forEach((section) => { section.explorer = new Explorer(section, read(section.dataset.source)); }));
  Object.assign(window.closerlook, { Explorer }); // for study_explorer.js
})();
