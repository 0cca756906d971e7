"use strict";
// Draws the live figures over the drawn ones, each when it comes into view. Without this script the drawn ones stay.
// The library is text in the page and runs when the first figure needs it. It interprets descriptions: nothing is compiled.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const state = { binary: false };
  const live = new Map(); // id -> what is drawn there
  const copy = (value) => JSON.parse(JSON.stringify(value));

  // Rows from columns, once for each figure.
  function rowsOf(figure) {
    if (figure.rows) return figure.rows;
    figure.rows = Array.from({ length: figure.count }, () => ({}));
    for (const [field, column] of Object.entries(figure.columns)) {
      const values = column.texts ? column.places.map((place) => (place === null ? null : column.texts[place])) : column;
      values.forEach((value, number) => {
        if (value !== null) figure.rows[number][field] = value;
      });
    }
    for (const row of figure.rows) if (figure.panels && row[figure.panels] !== undefined) row.panel = row[figure.panels];
    return figure.rows;
  }

  // A row is drawn when it has what was chosen, or nothing to do with the choice.
  function chosenRows(figure, chosen) {
    const wanted = figure.choices || [];
    return rowsOf(figure).filter((row) => wanted.every((one, at) => [undefined, chosen[at]].includes(row[one.field])));
  }

  // Binary prefixes: every number in the unit, the ends of its axis, and the words that name it.
  function inBinary(unit, spec, rows) {
    const scaled = rows.map((row) => {
      const found = { ...row };
      for (const field of unit.fields) if (field in found) found[field] *= unit.factor;
      if (found.value_text) found.value_text = String(Number(found.value.toPrecision(4)));
      return found;
    });
    const walk = (part) => {
      if (!part || typeof part !== "object") return;
      if (unit.fields.includes(part.field) && part.scale && part.scale.domain) {
        part.scale.domain = part.scale.domain.map((end) => end * unit.factor);
        if (part.axis && part.axis.values) for (const name of ["values", "labelExpr"]) delete part.axis[name];
      }
      Object.values(part).forEach(walk);
    };
    walk(spec);
    return [JSON.parse(JSON.stringify(spec).replaceAll(unit.text, unit.binary)), scaled];
  }

  async function draw(id) {
    const found = live.get(id);
    const figure = data.figures[id];
    let [spec, rows] = [copy(figure.spec), chosenRows(figure, found.chosen)];
    if (figure.unit && state.binary) [spec, rows] = inBinary(figure.unit, spec, rows);
    spec.config = data.config;
    spec.data = { values: copy(rows) };
    if (found.result) found.result.finalize();
    found.result = await window.vegaEmbed(found.element, spec, {
      ...{ mode: "vega-lite", renderer: "svg", ast: true, actions: false, logLevel: 1 },
      ...{ defaultStyle: false, tooltip: { disableDefaultStyle: true } },
    });
    found.element.querySelector("form")?.remove(); // an empty place for controls
    for (const mark of found.element.querySelectorAll("[role=graphics-symbol]:empty:is(g)")) {
      mark.setAttribute("aria-hidden", "true"); // a layer without data has nothing to read
    }
    found.result.view.addEventListener("click", (event, item) => {
      const file = item && item.datum && data.files[item.datum.file];
      if (file) window.open("../" + file.split("/").map(encodeURIComponent).join("/"), "_blank", "noopener");
    });
  }

  function lists(id, box) {
    const figure = data.figures[id];
    const found = live.get(id);
    const several = (figure.choices || []).filter((one) => one.options.length > 1);
    if (!several.length) return;
    const row = document.createElement("div");
    row.className = "choices";
    figure.choices.forEach((one, at) => {
      if (one.options.length < 2) return;
      const label = document.createElement("label");
      label.textContent = one.label;
      const select = document.createElement("select");
      for (const option of one.options) select.add(new Option(option, option));
      select.value = one.first;
      select.addEventListener("change", () => {
        found.chosen[at] = select.value;
        draw(id);
      });
      label.append(select);
      row.append(label);
    });
    box.querySelector("figcaption").append(row);
  }

  function library() {
    if (window.vegaEmbed) return;
    const script = document.createElement("script");
    script.textContent = document.getElementById("library").textContent;
    document.head.append(script);
    script.remove();
  }

  function begin(box) {
    const id = box.id;
    if (!data.figures[id] || live.has(id)) return;
    library();
    const stage = box.querySelector(".stage");
    const element = document.createElement("div");
    element.className = "live";
    stage.append(element);
    live.set(id, { element, chosen: (data.figures[id].choices || []).map((one) => one.first) });
    draw(id).then(
      () => {
        stage.classList.add("drawn");
        lists(id, box);
        box.dataset.drawn = "live";
      },
      () => {
        element.remove(); // what cannot be drawn live stays as it is drawn
        box.dataset.drawn = "static";
      },
    );
  }

  const waiting = [];
  let busy = false;
  function next() {
    if (busy || !waiting.length) return;
    busy = true;
    const idle = window.requestIdleCallback || ((work) => setTimeout(work, 1));
    idle(() => {
      begin(waiting.shift());
      busy = false;
      next();
    });
  }

  const seen = new IntersectionObserver(
    (entries) => {
      for (const entry of entries) {
        if (!entry.isIntersecting) continue;
        seen.unobserve(entry.target);
        waiting.push(entry.target);
      }
      next();
    },
    { rootMargin: "400px 0px" },
  );
  for (const box of document.querySelectorAll("figure.chart")) if (data.figures[box.id]) seen.observe(box);
  document.addEventListener("vtax:units", (event) => {
    state.binary = event.detail.binary;
    live.forEach((_, id) => draw(id));
  });
})();
