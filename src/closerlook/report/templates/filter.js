"use strict";
/* The choice of an encoder and a task that all figures and tables follow. It is kept in the address, after the name of the
   place on the page: #table-shape?encoder=bert-tiny&task=pos. Other scripts read `closerlook.filter`. */
(() => {
  const root = document.documentElement;
  const form = document.querySelector("form.filter");
  const selects = form ? [...form.querySelectorAll("select")] : [];
  const status = form?.querySelector("[role=status]");
  const followers = [];
  const chosen = () => Object.fromEntries(selects.filter((one) => one.value).map((one) => [one.name, one.value]));

  /** Whether something about an encoder and some tasks fits the choice; what it is not about is left empty. */
  function fits({ encoder = "", tasks = [] }) {
    const now = chosen();
    const isTask = !now.task || !tasks.length || tasks.includes(now.task);
    return isTask && (!now.encoder || !encoder || encoder === now.encoder);
  }

  // ---- the address ----

  function address() {
    const [place, query] = location.hash.slice(1).split("?");
    return { place: decode(place), query: query === undefined ? null : new URLSearchParams(query) };
  }

  function decode(text) {
    try { return decodeURIComponent(text); } catch { return text; }
  }

  function writeAddress() {
    const query = new URLSearchParams(chosen()).toString();
    const hash = encodeURIComponent(address().place) + (query ? `?${query}` : "");
    if (hash !== location.hash.slice(1)) history.replaceState(null, "", hash ? `#${hash}` : location.pathname + location.search);
  }

  /** Take the choice from the address, if it has one; names that this page does not have are ignored. */
  function readAddress() {
    const { query } = address();
    if (query === null) return;
    for (const select of selects) {
      const wanted = query.get(select.name) || "";
      select.value = [...select.options].some((option) => option.value === wanted) ? wanted : "";
    }
  }

  /** Open everything that contains the place in the address, and go there. */
  function goToPlace() {
    const target = document.getElementById(address().place);
    if (!target) return;
    for (let one = target; one; one = one.parentElement) if (one.tagName === "DETAILS") one.open = true;
    (target.tagName === "TABLE" ? target.closest(".sheet") || target : target).scrollIntoView();
  }

  /** Go to the place in the address if it comes with a choice, since what the choice hides moves the place. */
  function goToLinkedPlace() { if (address().query !== null) goToPlace(); }

  // ---- what follows ----

  /** Hide elements that are about another encoder or task, and say so where nothing is left. */
  function hideOthers() {
    for (const one of document.querySelectorAll("[data-encoder], [data-task]")) {
      const tasks = [one.dataset.task, one.dataset.tunedOn].filter(Boolean);
      one.classList.toggle("filtered-out", !fits({ encoder: one.dataset.encoder, tasks }));
    }
    for (const list of document.querySelectorAll("[data-follows]")) {
      list.querySelector(":scope > .nothing")?.remove();
      if ([...list.children].some((one) => !one.classList.contains("filtered-out"))) continue;
      const message = document.createElement(list.tagName === "UL" ? "li" : "p");
      message.className = "nothing";
      message.textContent = describe() ? `Nothing here is about ${describe()}.` : "";
      list.append(message);
    }
  }

  function describe() { return Object.values(chosen()).join(" on "); }

  const isFiltered = () => Object.keys(chosen()).length > 0;

  function apply() {
    root.toggleAttribute("data-filtered", isFiltered());
    if (form) form.querySelector("[type=reset]").disabled = !isFiltered();
    hideOthers();
    followers.forEach((follow) => follow());
    if (status) status.textContent = isFiltered() ? `Figures and tables show ${describe()} only.` : "Figures and tables show everything.";
  }

  window.closerlook.filter = { chosen, isFiltered, fits, describe, follow: (act) => followers.push(act), goToLinkedPlace };
  if (form) form.hidden = false;
  readAddress();
  form?.addEventListener("submit", (event) => event.preventDefault());
  form?.addEventListener("change", () => { writeAddress(); apply(); });
  form?.addEventListener("reset", () => setTimeout(() => { writeAddress(); apply(); }));
  addEventListener("hashchange", () => {
    const before = JSON.stringify(chosen());
    readAddress();
    writeAddress();
    if (JSON.stringify(chosen()) !== before) apply();
    goToPlace();
  });
  addEventListener("DOMContentLoaded", () => { if (isFiltered()) apply(); goToLinkedPlace(); });

  // ---- paper: everything is open ----

  let closed = [];
  addEventListener("beforeprint", () => {
    closed = [...document.querySelectorAll("details.fold:not([open]), details.chapter:not([open])")];
    closed.forEach((one) => { one.open = true; });
  });
  addEventListener("afterprint", () => closed.forEach((one) => { one.open = false; }));
})();
