"use strict";
// Sorting, filtering, prefixes of byte units, and the place in the contents. Without this script the tables are whole.
(() => {
  const BINARY = { k: 1e3 / 1024, M: 1e6 / 1024 ** 2, G: 1e9 / 1024 ** 3, T: 1e12 / 1024 ** 4 };
  const NUMBER = /\d[\d,]*(?:\.\d+)?/g;

  const make = (tag, text) => {
    const element = document.createElement(tag);
    if (text) element.textContent = text;
    return element;
  };

  // --- units -----------------------------------------------------------------------------------------------------
  const scaled = [...document.querySelectorAll("tr[data-unit]")].filter((row) => /^[kMGT]B/.test(row.dataset.unit));

  function times(text, factor) {
    return text.replace(NUMBER, (word) => {
      const decimals = (word.split(".")[1] || "").length;
      const value = Number(word.replaceAll(",", "")) * factor;
      return value.toLocaleString("en-US", { minimumFractionDigits: decimals, maximumFractionDigits: decimals });
    });
  }

  const decimal = new Map(); // element or text -> what it says in decimal units
  function swap(element, change, binary) {
    if (!decimal.has(element)) decimal.set(element, element.textContent);
    element.textContent = binary ? change(decimal.get(element)) : decimal.get(element);
  }

  function units(binary) {
    for (const row of scaled) {
      const unit = row.dataset.unit;
      const other = `${unit[0].toUpperCase()}i${unit.slice(1)}`;
      if (row.closest("table.matrix")) {
        for (const cell of row.querySelectorAll("td")) swap(cell.firstChild, (text) => times(text, BINARY[unit[0]]), binary);
      }
      for (const value of row.querySelectorAll(".u")) swap(value, (text) => times(text, BINARY[unit[0]]), binary);
      const name = row.querySelector("th .value");
      if (name) swap(name, (text) => text.replace(`(${unit})`, `(${other})`), binary);
      const table = row.closest("details");
      for (const text of table ? table.querySelectorAll("summary, p.note") : []) {
        swap(text, (words) => words.replace(unit, other), binary);
      }
    }
    document.dispatchEvent(new CustomEvent("vtax:units", { detail: { binary } }));
  }

  const controls = document.getElementById("controls");
  if (scaled.length && controls) {
    const set = make("fieldset");
    set.append(make("legend", "Byte units"));
    for (const [value, text] of [["decimal", "GB/s (10⁹)"], ["binary", "GiB/s (2³⁰)"]]) {
      const label = make("label");
      const radio = make("input");
      radio.type = "radio";
      radio.name = "units";
      radio.value = value;
      radio.checked = value === "decimal";
      radio.addEventListener("change", () => units(value === "binary"));
      label.append(radio, text);
      set.append(label);
    }
    controls.append(set);
  }

  // --- sorting ---------------------------------------------------------------------------------------------------
  const keyOf = (row, column) => {
    const cell = row.cells[column];
    if (!cell) return "";
    const text = cell.dataset.sort || (cell.querySelector(".value") || cell).textContent.trim();
    const number = text.replaceAll(",", "").match(/^[-+]?\d+(\.\d+)?(e[-+]?\d+)?/);
    return number ? Number(number[0]) : text;
  };

  function sort(table, head, column) {
    const body = table.tBodies[0];
    if (!table.original) table.original = [...body.rows];
    const before = head.getAttribute("aria-sort");
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    if (before === "descending") {
      body.append(...table.original); // a third press: as it was
      for (const row of table.original) if (row.classList.contains("heading")) row.hidden = false;
      return;
    }
    const way = before === "ascending" ? -1 : 1;
    head.setAttribute("aria-sort", way === 1 ? "ascending" : "descending");
    const rows = table.original.filter((row) => !row.classList.contains("heading"));
    for (const row of table.original) if (row.classList.contains("heading")) row.hidden = true;
    rows.sort((one, two) => {
      const a = keyOf(one, column);
      const b = keyOf(two, column);
      return way * (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true }));
    });
    body.append(...rows);
  }

  for (const table of document.querySelectorAll("table.sortable")) {
    [...table.tHead.rows[0].cells].forEach((head, column) => {
      if (head.classList.contains("plot")) return;
      const button = make("button");
      button.type = "button";
      button.append(...head.childNodes);
      button.addEventListener("click", () => sort(table, head, column));
      head.append(button);
    });
  }

  // --- filters of the forest plot --------------------------------------------------------------------------------
  const forest = document.getElementById("forest");
  const tools = document.getElementById("forest-tools");
  if (forest && tools) {
    const rows = [...forest.tBodies[0].rows].filter((row) => !row.classList.contains("heading"));
    const headings = [...forest.tBodies[0].rows].filter((row) => row.classList.contains("heading"));
    const values = (split) => [...new Set(rows.flatMap(split))];
    const search = make("input");
    search.type = "search";
    search.size = 16;
    const pick = (options) => {
      const select = make("select");
      select.add(new Option("all", ""));
      for (const option of options) select.add(new Option(option, option));
      return select;
    };
    const environment = pick(values((row) => row.dataset.environment));
    const verdict = pick(values((row) => row.dataset.verdicts.split("|")));
    const count = make("span");
    count.setAttribute("role", "status");
    const apply = () => {
      const wanted = search.value.trim().toLowerCase();
      let shown = 0;
      for (const row of rows) {
        row.hidden = !(
          (!wanted || row.cells[0].textContent.toLowerCase().includes(wanted)) &&
          (!environment.value || row.dataset.environment === environment.value) &&
          (!verdict.value || row.dataset.verdicts.split("|").includes(verdict.value))
        );
        shown += row.hidden ? 0 : 1;
      }
      const sorted = forest.querySelector("thead [aria-sort]");
      for (const heading of headings) {
        heading.hidden = Boolean(sorted) || !rows.some((row) => !row.hidden && row.dataset.group === heading.textContent.trim());
      }
      count.textContent = shown === rows.length ? `${rows.length} rows` : `${shown} of ${rows.length} rows`;
    };
    for (const [text, input] of [["Metric holds", search], ["Environment", environment], ["Verdict", verdict]]) {
      const label = make("label", text);
      label.append(input);
      input.addEventListener("input", apply);
      tools.append(label);
    }
    tools.append(count);
    apply();
  }

  // --- places ----------------------------------------------------------------------------------------------------
  const open = () => {
    const target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    for (let place = target; place; place = place.parentElement) {
      if (place.tagName === "DETAILS") place.open = true;
    }
    if (target) target.scrollIntoView();
  };
  window.addEventListener("hashchange", open);
  if (location.hash) open();
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href^='#']");
    if (link && link.hash === location.hash) open(); // a second time to the same place
  });
  window.addEventListener("beforeprint", () => {
    for (const box of document.querySelectorAll("details")) box.open = true;
  });

  const links = new Map([...document.querySelectorAll("nav a")].map((link) => [link.hash.slice(1), link]));
  const here = new IntersectionObserver(
    (entries) => {
      for (const entry of entries) {
        if (!entry.isIntersecting) continue;
        for (const link of links.values()) link.removeAttribute("aria-current");
        const inside = entry.target.querySelector("section[id]");
        const link = links.get((inside || entry.target).id || "answer");
        if (link) link.setAttribute("aria-current", "location");
      }
    },
    { rootMargin: "-10% 0px -80% 0px" },
  );
  for (const section of document.querySelectorAll("main > section, main > details, body > header")) here.observe(section);

  // Where the contents stay above the page, the axis of the forest plot stays below them.
  const nav = document.querySelector("nav");
  new ResizeObserver(() => document.documentElement.style.setProperty("--nav", `${nav.offsetHeight}px`)).observe(nav);

  // A place that cannot be scrolled needs no stop for the keyboard. All are measured before the first one is changed.
  const stops = new ResizeObserver((entries) => {
    const boxes = entries.map((entry) => entry.target);
    const wide = boxes.map((box) => box.scrollWidth > box.clientWidth + 1);
    boxes.forEach((box, place) => {
      if (wide[place]) box.tabIndex = 0;
      else box.removeAttribute("tabindex");
    });
  });
  for (const box of document.querySelectorAll(".scroll, pre")) stops.observe(box);
})();
