"use strict";
window.closerlook.whenUnpacked(() => {
  const { make, read, inflate, counted, filter, Explorer } = window.closerlook;
  const host = document.getElementById("explorers"), box = host.querySelector(".explorer-box"), drill = document.getElementById("drill");
  const entries = read("explorers"), made = new Map();
  const links = make("p", { class: "merge-links", role: "status" });
  let current = null;

  /** Scroll to an element, and once more when the charts on the way have been drawn, since they move it. */
  function reveal(element, block) {
    const scroll = () => element.scrollIntoView({ block, behavior: "instant" });
    scroll();
    setTimeout(scroll, 400);
  }

  // ---- choice of encoder and task ----

  const picked = (what) => {
    const pick = host.querySelector(`[data-pick="${what}"]`);
    return pick ? (pick.querySelector("select") || pick.querySelector("input:checked")).value : null;
  };
  const isPicked = (entry) => ["encoder", "task"].every((what) => [null, entry[what]].includes(picked(what)));

  function pick(entry) {
    for (const what of ["encoder", "task"]) {
      const pick = host.querySelector(`[data-pick="${what}"]`);
      if (!pick) continue;
      const select = pick.querySelector("select");
      if (select) select.value = entry[what];
      else for (const input of pick.querySelectorAll("input")) input.checked = input.value === entry[what];
    }
  }

  /** Show the points of one encoder and task; they are unpacked when they are first shown. */
  async function show(entry) {
    current = entry;
    if (entry && !made.has(entry.data)) made.set(entry.data, create(entry));
    const explorer = entry ? await made.get(entry.data) : null;
    if (current !== entry) return null;
    if (explorer && box.contains(explorer.section)) return explorer; // moving it would take the focus away
    box.replaceChildren(explorer ? explorer.section : make("p", { class: "absent" }, "The points of this encoder and task are not on this page."));
    box.setAttribute("aria-busy", "false");
    links.replaceChildren();
    explorer?.section.querySelector(".status").after(links);
    explorer?.plot.resize();
    return explorer;
  }

  async function create(entry) {
    const section = make("section", { class: "explorer", "data-source": entry.data, "aria-label": `Points of ${entry.encoder}, ${entry.task}` });
    section.explorer = new Explorer(section, await inflate(entry.data).json());
    section.addEventListener("pin", (event) => point(entry, section.explorer, event.detail));
    return section.explorer;
  }

  const start = () => { if (!current) show(entries.find(isPicked)); };
  host.addEventListener("change", (event) => { if (event.target.closest("[data-pick]")) show(entries.find(isPicked)); });

  /** Show points that fit the encoder and the task that the reader chose for the whole page. */
  function follow() {
    const fits = (entry) => filter.fits({ encoder: entry.encoder, tasks: [entry.task] });
    const entry = current && fits(current) ? current : entries.find(fits);
    if (entry) pick(entry);
    if (current || !entry) show(entry);
  }
  filter.follow(follow);
  const near = new IntersectionObserver((seen) => { if (seen.some((one) => one.isIntersecting)) { near.disconnect(); start(); } }, { rootMargin: "800px" });
  near.observe(host);

  // ---- blocked merges: from their table to the points, and back ----

  if (!drill) return;

  /** The explorer that has the points of a space with blocked merges, if one has. */
  function entryOf(space) {
    const isSame = (entry) => (space.state === "before" ? entry.encoder === space.encoder || entry.encoder.startsWith(`${space.encoder} (`) : entry.encoder === space.encoder && entry.seed === space.seed);
    return entries.find((entry) => entry.task === space.task && entry.layers.includes(space.layer) && isSame(entry));
  }

  const rowsOf = (merge) => new Set([...(merge.points || []), ...(merge.blocker_points || [])].map((one) => one.row));

  /** Select the points of a blocked merge, at its layer and snapshot. */
  async function light(space, merge) {
    const entry = entryOf(space);
    pick(entry);
    const explorer = await show(entry);
    if (!explorer) return;
    const rows = rowsOf(merge), { plot } = explorer;
    explorer.goto(entry.layers.indexOf(space.layer), space.state === "before" ? 0 : explorer.data.snapshots.length - 1);
    explorer.choose([...plot.label.keys()].filter((at) => !plot.test[at] && rows.has(plot.row[at])));
  }

  /** Link every listed blocked merge with its points. */
  function link() {
    const space = drill.current();
    if (!entryOf(space)) return;
    for (const row of drill.querySelectorAll(".merges > details")) {
      const button = make("button", { type: "button", class: "to-points" }, "Show these points in the explorer");
      button.addEventListener("click", async () => { await light(space, row.merge); reveal(host, "start"); box.querySelector("canvas").focus({ preventScroll: true }); });
      row.addEventListener("toggle", () => { if (row.open && !row.classList.contains("marked")) light(space, row.merge); });
      row.querySelector("summary").after(make("p", {}, button));
    }
  }

  /** Mark the blocked merges in the table that a pinned point belongs to. */
  function point(entry, explorer, at) {
    const { plot } = explorer, state = plot.snapshot === 0 ? "before" : plot.snapshot === explorer.data.snapshots.length - 1 ? "after" : null;
    const isHere = (space) => entryOf(space) === entry && space.layer === entry.layers[plot.layer] && space.state === state;
    const space = plot.test[at] || !plot.pinned.has(at) ? null : drill.spaces.find(isHere);
    const merges = space ? space.merges.filter((merge) => rowsOf(merge).has(plot.row[at])) : [];
    links.replaceChildren();
    if (!merges.length) return;
    drill.open(space);
    const rows = [...drill.querySelectorAll(".merges > details")].filter((row) => merges.includes(row.merge));
    rows.forEach((row) => { row.classList.add("marked"); row.open = true; });
    const go = make("button", { type: "button" }, "Show them in the table");
    go.addEventListener("click", () => { reveal(rows[0], "center"); rows[0].querySelector("summary").focus({ preventScroll: true }); });
    links.append(`“${plot.name(at)}” is a point of ${counted(merges.length, "blocked merge")}. `, go);
  }

  drill.addEventListener("merges", link);
  link();
});
