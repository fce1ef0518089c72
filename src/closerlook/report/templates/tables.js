/* Tables can be sorted and searched, follow the choice of encoder and task, and show ten rows at first. Without this script,
   and on paper, they are complete. */
(() => {
  const { make, downloadCsv, filter } = window.closerlook;
  const FEW = 10;

  /** The number that a cell is sorted by: of 'before → after' the second; null if it has none. */
  function numberOf(text) {
    const shown = text.split("→").pop().replaceAll("−", "-").replaceAll(",", "").replaceAll("\u00a0", " ");
    const found = shown.match(/[-+]?\d+(\.\d+)?(e[-+]?\d+)?/i);
    return found ? Number(found[0]) * (shown.trim().startsWith("<") ? 0.999 : 1) : null;
  }

  const isMissing = (text) => text === "" || text === "–";
  const isNumber = (text) => /^[<−+-]?\s*[\d.,]+(e[−+-]?\d+)?\s*%?$/i.test(text);

  /** The rows of a table, each with all of its cells: a cell that spans several rows is copied. */
  function rowsOf(table, width) {
    const spanning = new Map();
    return [...table.tBodies[0].rows].map((row, order) => {
      const own = [...row.cells], cells = [];
      for (let at = 0; at < width; at += 1) {
        const above = spanning.get(at);
        if (above?.left > 0) {
          above.left -= 1;
          cells.push(above.cell.cloneNode(true));
        } else {
          const cell = own.shift();
          spanning.set(at, { cell, left: cell.rowSpan - 1 });
          cells.push(cell);
        }
      }
      return { order, element: row, cells, texts: cells.map((cell) => (cell.querySelector("bdi") || cell).textContent.trim()) };
    });
  }

  class Sheet {
    constructor(table) {
      this.table = table;
      this.box = table.closest(".sheet");
      this.heads = [...table.tHead.rows[table.tHead.rows.length - 1].cells];
      this.groups = table.tHead.rows.length > 1 ? [...table.tHead.rows[0].cells].map((cell) => ({ cell, width: cell.colSpan })) : [];
      this.rows = rowsOf(table, this.heads.length);
      this.sorted = { at: null, sign: 1 };
      this.wanted = "";
      this.isLong = this.rows.length > FEW;
      table.classList.toggle("collapsed", this.isLong);
      this.heads.forEach((head, at) => this.addSort(head, at));
      this.addTools();
      this.isArranged = false;
    }

    // ---- controls ----

    addSort(head, at) {
      const title = this.titles()[at] || "this column";
      const button = make("button", { type: "button", class: "sort", "aria-label": `Sort by ${title}` });
      head.append(button);
      head.classList.add("sortable");
      head.addEventListener("click", (event) => { if (!event.target.closest("a")) this.sort(at); });
    }

    addTools() {
      this.search = make("input", { type: "search", placeholder: `search in ${this.rows.length} rows`, "aria-label": "Search in this table" });
      this.search.addEventListener("input", () => { this.wanted = this.search.value.trim().toLowerCase(); this.arrange(); });
      const save = make("button", { type: "button", "data-save-table": "", title: "Download the rows of this table that the choice and the search leave" }, "CSV");
      save.addEventListener("click", () => this.save());
      this.box.prepend(make("div", { class: "sheet-tools" }, this.isLong ? this.search : null, save));
      this.more = make("button", { type: "button", class: "more", "aria-expanded": "false" });
      this.more.addEventListener("click", () => { this.table.classList.toggle("collapsed"); this.tell(); });
      this.note = make("span", { role: "status" });
      this.box.append(make("div", { class: "sheet-more" }, this.note, this.more));
      this.shown = this.rows;
      this.tell();
    }

    // ---- which rows, in which order ----

    sort(at) {
      const { at: before, sign } = this.sorted;
      this.sorted = before !== at ? { at, sign: 1 } : sign === 1 ? { at, sign: -1 } : { at: null, sign: 1 };
      this.heads.forEach((head, one) => {
        if (one === this.sorted.at) head.setAttribute("aria-sort", this.sorted.sign === 1 ? "ascending" : "descending");
        else head.removeAttribute("aria-sort");
      });
      this.arrange();
    }

    /** Keep a row if the names in it fit the choice, and if it contains the searched text. */
    keeps(row) {
      for (const [kind, name] of Object.entries(filter.chosen())) {
        const holding = this.heads.flatMap((head, at) => (head.dataset.names === kind ? [at] : []));
        if (holding.length && !holding.some((at) => row.texts[at] === name)) return false;
      }
      return !this.wanted || row.cells.some((cell) => cell.textContent.toLowerCase().includes(this.wanted));
    }

    inOrder(rows) {
      const { at, sign } = this.sorted;
      if (at === null) return rows;
      const texts = this.rows.map((row) => row.texts[at]).filter((text) => !isMissing(text));
      const numeric = this.heads[at].classList.contains("number") ? texts.some((text) => numberOf(text) !== null) : texts.every(isNumber);
      const key = (row) => (isMissing(row.texts[at]) ? null : numeric ? numberOf(row.texts[at]) : row.texts[at]);
      const compare = (one, other) => (numeric ? one - other : one.localeCompare(other, "en", { numeric: true }));
      return [...rows].sort((one, other) => {
        const [first, second] = [key(one), key(other)];
        if (first === null || second === null) return (first === null) - (second === null) || one.order - other.order;
        return sign * compare(first, second) || one.order - other.order;
      });
    }

    /** Show the rows that are left, in order; neighbours with the same name share one cell. */
    arrange() {
      this.hideColumns();
      this.shown = this.hidden.size && this.hidden.size === this.heads.filter((head) => head.dataset.of).length ? [] : this.inOrder(this.rows.filter((row) => this.keeps(row)));
      const body = this.table.tBodies[0];
      this.shown.forEach((row, place) => this.fill(row, this.shown[place - 1]));
      this.shown.forEach((row, place) => this.join(row, place));
      body.replaceChildren(...this.shown.map((row) => row.element));
      if (!this.shown.length) body.append(make("tr", { class: "nothing" }, make("td", { colspan: this.heads.length }, this.emptyText())));
      this.tell();
    }

    emptyText() {
      const subject = filter.describe();
      if (!this.wanted) return `This table has nothing about ${subject}.`;
      return `No row ${subject ? `about ${subject} ` : ""}contains “${this.search.value.trim()}”.`;
    }

    /** Whether a cell shows the same name as the cell above it, and so do the cells before it. */
    isSame(row, above, at) {
      return Boolean(above) && at < 2 && row.cells[at].tagName === "TH" && row.texts.slice(0, at + 1).every((text, one) => text === above.texts[one]);
    }

    fill(row, above) {
      row.element.classList.toggle("first", !this.isSame(row, above, 0));
      row.cells.forEach((cell, at) => { cell.hidden = this.hidden.has(at); });
      row.element.replaceChildren(...row.cells.filter((_, at) => !this.isSame(row, above, at)));
    }

    join(row, place) {
      for (const at of [0, 1]) {
        const cell = row.cells[at];
        if (cell?.tagName !== "TH" || this.isSame(row, this.shown[place - 1], at)) continue;
        let end = place + 1;
        while (end < this.shown.length && this.isSame(this.shown[end], this.shown[end - 1], at)) end += 1;
        cell.rowSpan = end - place;
        cell.scope = at === 0 || end - place > 1 ? "rowgroup" : "row";
      }
    }

    /** Hide the columns of encoders or tasks that are not chosen. */
    hideColumns() {
      const chosen = filter.chosen();
      const isOther = (head) => head.dataset.of && chosen[head.dataset.of] && chosen[head.dataset.of] !== head.dataset.name;
      this.hidden = new Set(this.heads.flatMap((head, at) => (isOther(head) ? [at] : [])));
      this.heads.forEach((head, at) => { head.hidden = this.hidden.has(at); });
      let start = 0;
      for (const { cell, width } of this.groups) {
        const left = Array.from({ length: width }, (_, at) => start + at).filter((at) => !this.hidden.has(at)).length;
        cell.hidden = left === 0;
        cell.colSpan = Math.max(1, left);
        start += width;
      }
    }

    /** Say how many rows are shown, and offer the rest. */
    tell() {
      const n = this.shown.length, isShort = this.table.classList.contains("collapsed");
      const all = this.rows.length, counted = (number) => number.toLocaleString("en");
      this.more.hidden = n <= FEW;
      this.more.textContent = isShort ? `show all ${counted(n)} rows` : `show only ${FEW} rows`;
      this.more.setAttribute("aria-expanded", String(!isShort));
      const first = isShort && n > FEW ? `the first ${FEW} of ` : "";
      this.note.textContent = n < all ? `${first}${counted(n)} rows that are left of ${counted(all)}` : n > FEW ? `${first || "all "}${counted(n)} rows` : "";
      this.note.parentElement.hidden = !this.note.textContent;
    }

    // ---- download ----

    titles() {
      const above = this.groups.flatMap(({ cell, width }) => Array(width).fill(cell.textContent.trim()));
      return this.heads.map((head, at) => `${above[at] || ""} ${(head.querySelector("bdi") || head).textContent.trim()}`.trim());
    }

    save() {
      const titles = this.titles().map((title, at) => title || `column ${at + 1}`);
      const small = (cell) => [...cell.querySelectorAll("small")].map((one) => `(${one.textContent.trim()})`);
      const shown = (cell, text) => (isNumber(text) && !small(cell).length && /^[^<%]+$/.test(text) ? numberOf(text) : [text, ...small(cell)].join(" "));
      const rows = this.shown.map((row) => Object.fromEntries(row.cells.flatMap((cell, at) => (cell.hidden ? [] : [[titles[at], shown(cell, row.texts[at])]]))));
      return downloadCsv(rows, this.table.id);
    }
  }

  const sheets = [...document.querySelectorAll(".sheet table[id]")].map((table) => new Sheet(table));
  const follow = () => {
    sheets.forEach((sheet) => { if (filter.isFiltered() || sheet.isArranged) sheet.arrange(); sheet.isArranged = filter.isFiltered(); });
  };
  filter.follow(follow);
})();
