"use strict";
/* The data of the page, in one compressed element that is unpacked when the page is loaded. Other scripts use
   `closerlook.whenUnpacked` to wait for it, and `closerlook.read` to get a part of it by its name. */
(() => {
  const texts = new Map();

  /** The data of a name; each use parses it again, so the result may be changed. */
  const read = (name) => JSON.parse(texts.get(name));

  /** The compressed text in an element, as a Response. */
  function inflate(id) {
    const packed = atob(document.getElementById(id).textContent), bytes = new Uint8Array(packed.length);
    for (let at = 0; at < packed.length; at++) bytes[at] = packed.charCodeAt(at);
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip")));
  }

  /** Unpack all data, and run the chart library if the page has charts; the policy of the page allows it by its hash. */
  async function unpackAll() {
    for (const line of (await inflate("page-data").text()).split("\n")) {
      const end = line.indexOf(" ");
      texts.set(line.slice(0, end), line.slice(end + 1));
    }
    if (!texts.has("chart-library")) return;
    const script = document.createElement("script");
    script.textContent = read("chart-library");
    texts.delete("chart-library");
    document.body.append(script);
  }

  function complain() {
    const message = document.createElement("p");
    message.className = "note";
    message.setAttribute("role", "alert");
    message.textContent = window.DecompressionStream
      ? "The figures and points of this page cannot be read, because the file is damaged: copy it or make it again. The tables are complete."
      : "The figures and points of this page need a newer browser: Chrome or Edge 80, Firefox 113, Safari 16.4 or later. The tables are complete.";
    document.getElementById("main").prepend(message);
  }

  const unpacked = unpackAll().then(() => true, (error) => { console.error(error); complain(); return false; });

  /** Call a function when the data are there; never, if they cannot be unpacked. Functions are called in this order. */
  const whenUnpacked = (act) => unpacked.then((isThere) => { if (isThere) act(); });

  window.closerlook = { read, inflate, whenUnpacked };
})();
