"use strict";
(() => {
  const root = document.documentElement;
  const { filter, read, whenUnpacked } = window.closerlook;
  const css = (name) => getComputedStyle(root).getPropertyValue(name).trim();

  /** An element with attributes and children; texts are always set as text. */
  function make(tag, attributes = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name === "style") Object.assign(element.style, value);
      else if (value !== null && value !== undefined) element.setAttribute(name, value);
    }
    element.append(...children.filter((child) => child !== null));
    return element;
  }
  const named = (text) => make("bdi", {}, text);

  // ---- light and dark ----

  const isDark = () => (root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  document.getElementById("theme").addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    stages.forEach((stage) => stage.redraw());
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => stages.forEach((stage) => stage.redraw()));

  // ---- charts ----

  /** The rows of a dataset that is packed by column. */
  function unpack(columns) {
    const names = Object.keys(columns);
    const values = names.map((name) => (columns[name].texts ? columns[name].at.map((at) => columns[name].texts[at]) : columns[name]));
    return (values[0] || []).map((_, row) => Object.fromEntries(names.map((name, at) => [name, values[at][row]])));
  }

  function openSpec(name) {
    const spec = read(name);
    for (const name of Object.keys(spec.datasets || {})) spec.datasets[name] = unpack(spec.datasets[name]);
    return spec;
  }

  /** The style of a chart for paper, with the colours and fonts of the page. */
  function pageStyle(config) {
    const text = css("--text"), soft = css("--soft"), font = css("--font").replaceAll('"', "'");
    return {
      ...config, font, background: css("--surface"), padding: 2, aria: false,
      axis: { ...config.axis, labelFontSize: 12, titleFontSize: 12.5, labelColor: soft, titleColor: text, gridColor: css("--grid"), domainColor: css("--faint"), tickColor: css("--faint") },
      legend: { ...config.legend, labelColor: text, titleColor: soft, labelFontSize: 12, titleFontSize: 12 },
      title: { ...config.title, color: text, subtitleColor: soft },
      text: { color: text },
    };
  }

  /** Remove the legends of a chart that has buttons instead. */
  function withoutLegends(spec) {
    for (const part of [spec, ...(spec.layer || []), ...(spec.hconcat || []), ...(spec.concat || [])]) {
      if (part !== spec && part.layer) withoutLegends(part);
      if (part.encoding?.color) part.encoding.color.legend = null;
    }
  }

  /** Set how a panel shows the names of its rows. */
  function setRowNames(panel, axis) {
    for (const part of [panel, ...(panel.layer || [])]) if (part.encoding?.y?.axis) Object.assign(part.encoding.y.axis, axis);
  }

  /** Keep the rows of the chosen encoder and task; from scales, remove the names of which no row is left. */
  function narrow(spec) {
    const now = filter.chosen();
    const isOther = (row) => ["encoder", "task"].some((kind) => now[kind] && row[kind] !== undefined && row[kind] !== now[kind]);
    const all = Object.values(spec.datasets).flat(), kept = new Set(all.filter((row) => !isOther(row)));
    if (kept.size === all.length) return { all, kept: all };
    for (const name of Object.keys(spec.datasets)) spec.datasets[name] = spec.datasets[name].filter((row) => kept.has(row));
    const isLeft = (field) => { const left = new Set([...kept].map((row) => row[field])); return (name) => left.has(name); };
    narrowScales(spec, isLeft);
    return { all, kept: [...kept] };
  }

  /** Remove names from the scales of a part of a chart; its height follows the number of its rows. */
  function narrowScales(part, isLeft) {
    let share = 1;
    for (const [channel, { field, scale }] of Object.entries(part.encoding || {})) {
      if (!field || !Array.isArray(scale?.domain) || typeof scale.domain[0] !== "string") continue;
      const places = scale.domain.flatMap((name, at) => (isLeft(field)(name) ? [at] : []));
      if (!places.length || places.length === scale.domain.length) continue;
      if (channel === "y") share = places.length / scale.domain.length;
      if (Array.isArray(scale.range) && scale.range.length === scale.domain.length) scale.range = places.map((at) => scale.range[at]);
      scale.domain = places.map((at) => scale.domain[at]);
    }
    for (const inner of [...(part.layer || []), ...(part.hconcat || []), ...(part.concat || [])]) {
      const ofInner = narrowScales(inner, isLeft);
      if (part.layer) share = Math.min(share, ofInner);
    }
    if (share < 1 && typeof part.height === "number") part.height = Math.max(64, Math.round(part.height * share));
    return share;
  }

  /** Fit a chart to a width: panels next to each other, or below each other if they would be too narrow. */
  function fit(spec, layout, width) {
    const panels = spec.hconcat || spec.concat;
    if (!panels) {
      spec.autosize = { type: "fit-x", contains: "padding" };
      spec.width = Math.min(width, layout.most);
      return;
    }
    const gap = 26;
    const columns = Math.max(1, Math.min(panels.length, spec.columns || panels.length, Math.floor((width + gap) / (layout.least + gap))));
    const once = layout.labelled_once && columns > 1, names = layout.labelled_once ? Math.min(layout.axis, 0.42 * width) : layout.axis;
    if (layout.labelled_once) panels.forEach((panel) => setRowNames(panel, { labelLimit: names - 10 }));
    const inner = once ? (width - 8 - names - gap * (columns - 1)) / columns - 14 : Math.min(layout.most, (width - 8 - gap * (columns - 1)) / columns) - names - 6;
    for (const panel of panels) {
      panel.width = Math.max(90, Math.floor(inner));
      if (once && panel !== panels[0]) setRowNames(panel, { labels: false });
      if (layout.square) panel.height = panel.width;
    }
    delete spec.hconcat;
    Object.assign(spec, { concat: panels, columns, spacing: gap });
  }

  /** A chart with its buttons, data table and downloads; it is drawn when it comes into view. */
  class Stage {
    constructor(figure) {
      this.figure = figure;
      this.chart = figure.querySelector(".chart");
      this.seen = false;
      figure.querySelectorAll("[data-save]").forEach((button) => button.addEventListener("click", () => this.save(button.dataset.save)));
      figure.querySelector("details.data").addEventListener("toggle", () => this.tabulate());
      new IntersectionObserver((entries, watcher) => {
        if (entries.some((entry) => entry.isIntersecting)) { watcher.disconnect(); this.seen = true; this.redraw(); }
      }, { rootMargin: "400px" }).observe(this.chart);
      let width = 0;
      new ResizeObserver(() => {
        const now = this.chart.clientWidth;
        if (Math.abs(now - width) > 6) { clearTimeout(this.timer); this.timer = setTimeout(() => this.redraw(), width ? 150 : 0); width = now; }
      }).observe(this.chart);
    }

    show(panel, absent = "This study has no such figure.") {
      this.panel = panel;
      const tools = this.figure.querySelector(".tools");
      tools.hidden = !panel;
      this.figure.querySelector("figcaption").replaceChildren(...(panel ? panel.caption : []).map(([text, term]) => document.getElementById(term) ? make("a", { class: "defined", href: `#${term}` }, text) : text));
      this.chart.classList.toggle("absent", !panel);
      this.chart.setAttribute("aria-label", panel ? `${panel.title}. ${panel.alt}` : "");
      const partial = this.figure.querySelector(".partial");
      partial.hidden = true;
      if (!panel) { this.toggles = []; this.shown = new Set(); this.chips(); this.clear(absent); return; }
      const { all, kept } = filter.isFiltered() ? narrow(openSpec(panel.spec)) : { all: [1], kept: [1] };
      this.toggles = panel.toggles.filter(({ name }) => !["encoder", "task"].some((kind) => all.some((row) => row[kind] === name) && !kept.some((row) => row[kind] === name)));
      this.shown = new Set(this.toggles.filter((one) => one.on).map((one) => one.name));
      this.chips();
      if (!kept.length) { tools.hidden = true; this.panel = null; this.clear(`This figure has nothing about ${filter.describe()}.`); return; }
      partial.hidden = kept.length === all.length;
      partial.textContent = `Only ${filter.describe()} is drawn; the text under the figure is about all of it.`;
      this.tabulate();
      this.redraw();
    }

    /** Show a sentence instead of a chart. */
    clear(text) {
      this.turn = (this.turn || 0) + 1;
      if (this.result) { this.result.finalize(); this.result = null; }
      this.chart.classList.add("absent");
      this.chart.dataset.state = "drawn";
      this.chart.textContent = text;
    }

    async redraw() {
      if (!this.seen || !this.panel) return;
      const turn = (this.turn = (this.turn || 0) + 1);
      this.chart.dataset.state = "drawing";
      const spec = openSpec(this.panel.spec);
      const config = pageStyle(spec.config);
      narrow(spec);
      if (this.panel.toggles.length) withoutLegends(spec);
      delete spec.config;
      fit(spec, this.panel.layout, this.chart.clientWidth);
      const shown = (spec.params || []).find((one) => one.name === "shown");
      if (shown) shown.value = [...this.shown];
      const options = { mode: "vega-lite", renderer: "svg", actions: false, ast: true, config, tooltip: { theme: isDark() ? "dark" : "light" } };
      if (filter.isFiltered()) options.logLevel = 1; // errors only: parts of a chart may have no rows left, which Vega warns about
      const result = await window.vegaEmbed(this.chart, spec, options);
      if (turn !== this.turn) { result.finalize(); return; }
      if (this.result) this.result.finalize();
      this.result = result;
      this.frame();
      this.chart.dataset.state = "drawn";
    }

    /** Show the selected labels, and fit planes to them. */
    apply() {
      if (!this.result) return;
      this.result.view.signal("shown", [...this.shown]);
      this.frame();
      this.result.view.runAsync();
    }

    frame() {
      const planes = this.panel.layout.planes;
      if (!planes.length || !this.shown.size) return;
      const rows = this.rows().filter((row) => this.shown.has(row.label));
      for (const [name, layer] of planes) {
        const inLayer = rows.filter((row) => row.layer === layer);
        const spans = ["x", "y"].map((axis) => [Math.min(...inLayer.map((row) => row[axis])), Math.max(...inLayer.map((row) => row[axis]))]);
        const reach = (Math.max(...spans.map(([low, high]) => high - low)) * 1.25) / 2 || 1;
        spans.forEach(([low, high], at) => this.result.view.signal("xy"[at] + name, (low + high) / 2));
        this.result.view.signal("reach" + name, reach);
      }
      this.result.view.runAsync();
    }

    rows() { return narrow(openSpec(this.panel.spec)).kept; }

    // ---- buttons ----

    chips() {
      const box = this.figure.querySelector(".toggles");
      box.replaceChildren();
      const { toggles } = this;
      if (!toggles.length) return;
      const first = toggles.filter((one) => one.on).map((one) => one.name);
      box.setAttribute("role", "group");
      box.setAttribute("aria-label", "Shown in the chart");
      const set = (names) => { this.shown = new Set(names); press(); this.apply(); };
      const buttons = toggles.map((one) => this.chip(one, () => { this.shown.has(one.name) ? this.shown.delete(one.name) : this.shown.add(one.name); press(); this.apply(); }));
      const press = () => buttons.forEach((button, at) => button.setAttribute("aria-pressed", this.shown.has(toggles[at].name)));
      if (toggles.length > first.length) {
        const all = make("button", { type: "button", class: "chip all", "data-all": "" }, `show all ${toggles.length}`);
        const few = make("button", { type: "button", class: "chip all" }, `reset to ${first.length}`);
        all.addEventListener("click", () => set(toggles.map((one) => one.name)));
        few.addEventListener("click", () => set(first));
        box.append(all, few);
      }
      box.append(...buttons);
      press();
    }

    chip(one, act) {
      const text = one.remark === "layer" ? `layer ${one.name}` : one.name;
      const remark = one.remark && one.remark !== "layer" ? make("em", {}, one.remark.replace("-", "−")) : null;
      const swatch = make("i", { "aria-hidden": "true", style: { color: one.colour } });
      const title = one.tooltip ? `${text}: ${one.tooltip}` : text;
      const button = make("button", { type: "button", class: "chip", title, "data-toggle": one.name }, swatch, make("b", {}, named(text)), remark);
      button.addEventListener("click", act);
      return button;
    }

    // ---- data and downloads ----

    tabulate() {
      const details = this.figure.querySelector("details.data");
      if (!details.open || !this.panel) return;
      const rows = this.rows(), most = 1000, names = Object.keys(rows[0] || {});
      const note = rows.length > most ? ` The first ${most} of ${rows.length} rows; the CSV file has all.` : "";
      const cells = (tag, row) => names.map((name) => make(tag, typeof row[name] === "number" ? { class: "number" } : {}, named(row[name] === null || row[name] === undefined ? "–" : String(row[name]))));
      const head = make("tr", {}, ...names.map((name) => make("th", { scope: "col" }, name)));
      const body = rows.slice(0, most).map((row) => make("tr", {}, ...cells("td", row)));
      details.querySelector(".scroll").replaceChildren(
        make("table", {}, make("caption", {}, this.panel.title + "." + note), make("thead", {}, head), make("tbody", {}, ...body)));
    }

    async save(kind) {
      const name = this.panel.title.replace(/[^\p{L}\p{N}]+/gu, "-").slice(0, 80);
      if (kind === "csv") {
        return downloadCsv(this.rows(), name);
      }
      if (!this.result) return undefined;
      const view = this.result.view;
      if (kind === "png") return download((await view.toCanvas(3)).toDataURL("image/png"), `${name}.png`);
      return download(URL.createObjectURL(new Blob([await view.toSVG()], { type: "image/svg+xml" })), `${name}.svg`);
    }
  }

  function download(address, name) {
    const link = make("a", { href: address, download: name });
    document.body.append(link);
    link.click();
    link.remove();
  }

  /** Save rows as a CSV file in which a spreadsheet shows every text as text, never as a formula. */
  function downloadCsv(rows, name) {
    const names = Object.keys(rows[0] || {});
    const safe = (value) => (typeof value === "string" && /^'*[=+\-@\t\r\n]/.test(value) ? `'${value}` : value);
    const quote = (value) => `"${String(safe(value) ?? "").replaceAll('"', '""')}"`;
    const lines = [names.map(quote).join(","), ...rows.map((row) => names.map((one) => quote(row[one])).join(","))];
    return download(URL.createObjectURL(new Blob([lines.join("\r\n")], { type: "text/csv" })), `${name}.csv`);
  }

  Object.assign(window.closerlook, { make, named, css, counted, downloadCsv }); // for tables.js and explorer.js

  // ---- choice of encoder and task ----

  const stages = [];

  /** Show the figures of a group, one at a time (two in a comparison). */
  function startFigures(group) {
    const entries = read(`entries-${group.dataset.kind}`);
    const ofGroup = [...group.querySelectorAll("figure")].map((figure) => new Stage(figure));
    stages.push(...ofGroup);
    const picked = (what) => {
      const box = group.querySelector(`[data-pick="${what}"]`);
      return box ? (box.querySelector("select") || box.querySelector("input:checked")).value : null;
    };
    /** Offer only what fits the choice for the whole page; if that excludes what is picked, pick the first that fits. */
    const offer = (what, fitting) => {
      const box = group.querySelector(`[data-pick="${what}"]`);
      const names = new Set(fitting.map((entry) => entry[what]));
      const options = box ? [...box.querySelectorAll("input, option")] : [];
      for (const option of options) {
        (option.closest("label.tab") || option).hidden = !names.has(option.value);
        option.disabled = !names.has(option.value);
      }
      if (!names.size || names.has(picked(what))) return;
      const first = options.find((option) => !option.disabled);
      if (first) first[first.tagName === "OPTION" ? "selected" : "checked"] = true;
    };
    const update = () => {
      const fitting = entries.filter((one) => filter.fits(one));
      offer("encoder", fitting);
      offer("task", fitting.filter((one) => picked("encoder") === null || one.encoder === picked("encoder")));
      const [encoder, task] = [picked("encoder"), picked("task")];
      const same = (one) => (encoder === null || one.encoder === encoder) && (task === null || one.task === task);
      const entry = fitting.find(same);
      const absent = fitting.length ? undefined : `There is no such figure about ${filter.describe()}.`;
      ofGroup.forEach((stage, side) => stage.show(entry ? entry.panels[side] : null, absent));
    };
    group.addEventListener("change", update);
    filter.follow(update);
    update();
  }

  // ---- blocked merges ----

  function startBlockedMerges(drill) {
    const spaces = read("blocked-spaces");
    const titled = (space) => [space.encoder, space.task, `layer ${space.layer}`, space.state + (space.seed === null ? "" : `, seed ${space.seed}`)].join(" · ");
    const options = spaces.map((space, at) => make("option", { value: at }, `${titled(space)} (${counted(space.merges.length, "blocked merge")})`));
    const select = make("select", {}, ...options);
    const search = make("input", { type: "search", placeholder: "label or word" });
    const status = make("p", { class: "meta", role: "status" });
    const list = make("div", { class: "merges" });
    drill.append(make("div", { class: "picks" }, make("label", { class: "pick" }, "space ", select), make("label", { class: "pick" }, "search ", search)), status, list);
    const offer = () => {
      const fitting = options.filter((_, at) => filter.fits({ encoder: spaces[at].encoder, tasks: [spaces[at].task] }));
      const before = fitting.find((option) => option.selected);
      select.replaceChildren(...fitting);
      if (fitting.length) (before || fitting[0]).selected = true;
      show();
    };
    const show = () => {
      if (!select.options.length) { status.textContent = `No blocked merges on this page are about ${filter.describe()}.`; list.replaceChildren(); return; }
      const space = spaces[Number(select.value)], wanted = search.value.trim().toLowerCase();
      const matches = space.merges.filter((merge) => !wanted || searchable(merge).some((text) => text.toLowerCase().includes(wanted)));
      const kept = counted(space.merges.length, "blocked merge");
      const shown = wanted ? `${matches.length} of ${kept} on this page contain “${search.value.trim()}”` : `${kept} on this page`;
      status.textContent = `${counted(space.clusters, "cluster")}, ${counted(space.labels, "label")}; ${shown}.`;
      list.replaceChildren(...matches.map((merge) => Object.assign(blockedMerge(merge), { merge })));
      drill.dispatchEvent(new Event("merges")); // study_explorer.js links them with points
    };
    const open = (space) => { select.value = String(spaces.indexOf(space)); search.value = ""; show(); };
    Object.assign(drill, { spaces, open, current: () => spaces[Number(select.value)] });
    select.addEventListener("change", show);
    search.addEventListener("input", show);
    filter.follow(offer);
    show();
  }

  /** The texts of a blocked merge that are searched: its labels, and the words and texts of its points. */
  function searchable(merge) {
    const texts = [...(merge.points || []), ...(merge.blocker_points || [])].flatMap((point) => [point.word, point.text]);
    return [merge.label, merge.other, ...texts].filter((text) => typeof text === "string");
  }

  function counted(n, noun) { return `${n.toLocaleString("en")} ${noun}${n === 1 ? "" : "s"}`; }

  function blockedMerge(merge) {
    const [first, second] = merge.sizes;
    const meta = make("span", { class: "meta" }, ` clusters of ${counted(first, "point")} and ${counted(second, "point")}, blocked by `);
    const size = make("span", { class: "meta" }, ` (${counted(merge.blocker_size, "point")})${merge.decided ? "" : "; the overlap is not proved, because the distance is too close to τ"}`);
    const summary = make("summary", {}, make("strong", {}, named(merge.label)), meta, make("strong", {}, named(merge.other)), size);
    const two = make("div", { class: "two" }, side(merge.label, merge.points), side(merge.other, merge.blocker_points));
    return make("details", {}, summary, two);
  }

  function side(label, points) {
    return make("div", {}, make("h3", {}, named(label)), make("ul", {}, ...(points || []).map(point)));
  }

  function point(one) {
    const weight = make("small", {}, `weight ${one.weight.toFixed(2)}`);
    const text = one.text === null || one.text === undefined ? make("bdi", {}, one.word ?? `row ${one.row}`) : sentence(one.text, one.word);
    const word = one.word && one.text ? make("strong", {}, named(one.word)) : null;
    return make("li", {}, word, word ? ": " : null, text, weight);
  }

  /** The sentence with every occurrence of the word's parts marked. */
  function sentence(text, word) {
    const parts = new Set((word || "").split(" ").filter(Boolean));
    const words = text.split(" ").flatMap((part, at) => [at ? " " : "", parts.size < 12 && parts.has(part) ? make("mark", {}, part) : part]);
    return make("bdi", {}, ...words);
  }

  whenUnpacked(() => {
    document.querySelectorAll(".figures").forEach(startFigures);
    document.querySelectorAll("#drill").forEach(startBlockedMerges);
    filter.goToLinkedPlace(); // again: buttons under figures have moved it
  });

  // ---- the current section in the contents list ----

  const links = new Map([...document.querySelectorAll(".contents a")].map((link) => [link.hash.slice(1), link]));
  const watcher = new IntersectionObserver((entries) => entries.forEach((entry) => {
    if (!entry.isIntersecting) return;
    links.forEach((link) => link.removeAttribute("aria-current"));
    links.get(entry.target.id)?.setAttribute("aria-current", "true");
  }), { rootMargin: "-20% 0px -70% 0px" });
  links.forEach((_, id) => { const target = document.getElementById(id); if (target) watcher.observe(target); });
  const contents = document.querySelector(".contents details");
  if (contents && innerWidth < 1180) contents.open = false;
})();
