"use strict";
// Draws the live figures over the drawn ones, each when it comes into view. Without this script the drawn ones stay.
// The plotting library stands in the page as text and runs when the first figure needs it: it takes as long as the page.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const state = { binary: false };
  const live = new Map(); // id -> what is drawn there

  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const copy = (value) => JSON.parse(JSON.stringify(value));

  function webgl() {
    try {
      const canvas = document.createElement("canvas");
      return Boolean(canvas.getContext("webgl2") || canvas.getContext("webgl"));
    } catch {
      return false;
    }
  }

  // Colour, symbol and dash of an environment, the same in every figure.
  function dress(trace) {
    const about = trace.meta || {};
    if (about.role === "waterfall") {
      trace.increasing = { marker: { color: css("--mark-good") } };
      trace.decreasing = { marker: { color: css("--mark-bad") } };
      trace.totals = { marker: { color: css("--soft") } };
      trace.connector = { line: { color: css("--soft"), width: 1 } };
    }
    if (about.role === "failed") trace.marker = { symbol: "x", size: 10, color: css("--stop"), line: { color: css("--paper"), width: 1 } };
    if (about.unit) trace.text = trace.z.map((row) => row.map((z) => (z === null ? "" : `${Number((10 ** z).toPrecision(4))} ${about.unit}`)));
    if (about.env === undefined) return trace;
    const place = about.env % data.colours;
    const colour = css(`--e${place}`);
    if (trace.type === "bar") trace.marker = { color: colour, line: { width: 0 } };
    else if (trace.type === "box") Object.assign(trace, { fillcolor: colour, line: { color: css("--ink"), width: 1 } });
    else if (about.role === "point") trace.marker = { color: colour, size: 5, opacity: 0.5, symbol: data.symbols[place] };
    else if (about.role === "run") {
      trace.marker = { color: css("--dot"), size: 6, line: { color: css("--ink"), width: 1 } };
    } else {
      trace.line = { ...(trace.line || {}), color: colour, width: 2, dash: data.dashes[place] };
      trace.marker = { color: colour, size: about.size || 7, symbol: data.symbols[place] };
    }
    return trace;
  }

  function axis(own, scene) {
    const plain = { gridcolor: css("--grid"), zerolinecolor: css("--grid"), linecolor: css("--soft"), tickcolor: css("--soft") };
    const title = own && own.title ? { ...own.title, font: { size: 12, color: css("--soft") } } : undefined;
    const extra = scene ? { backgroundcolor: "rgba(0,0,0,0)", color: css("--soft") } : { ticks: "outside", ticklen: 4, automargin: true };
    return { ...plain, ...extra, ...(own || {}), ...(title ? { title } : {}) };
  }

  function layoutOf(figure, element) {
    const layout = copy(figure.layout);
    for (const key of Object.keys(layout)) if (/^[xy]axis\d*$/.test(key)) layout[key] = axis(layout[key], false);
    layout.xaxis = axis(figure.layout.xaxis, false);
    layout.yaxis = axis(figure.layout.yaxis, false);
    if (layout.scene) for (const key of ["xaxis", "yaxis", "zaxis"]) layout.scene[key] = axis(layout.scene[key], true);
    for (const shape of layout.shapes || []) shape.line = { ...(shape.line || {}), color: css("--ink"), width: 1.5 };
    for (const note of layout.annotations || []) note.font = { size: 12, color: css("--ink") };
    return {
      ...layout,
      font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: css("--ink") },
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      margin: { l: 12, r: 12, t: 34, b: 44 },
      height: figure.height,
      width: element.clientWidth,
      hovermode: "closest",
      hoverlabel: { bgcolor: css("--paper"), bordercolor: css("--soft"), font: { color: css("--ink"), size: 13 } },
      legend: { orientation: "h", y: 1, yanchor: "bottom", x: 0 },
      dragmode: layout.scene ? "turntable" : "zoom",
    };
  }

  // Binary prefixes: every number along the axes that hold bytes, and the words beside them.
  function inBinary(figure, traces, layout) {
    const unit = figure.unit;
    for (const name of unit.axes) {
      for (const trace of traces) if (Array.isArray(trace[name])) trace[name] = trace[name].map((v) => v * unit.factor);
      for (const trace of traces) {
        for (const ends of ["array", "arrayminus"]) {
          const reach = trace[`error_${name}`];
          if (reach && reach[ends]) reach[ends] = reach[ends].map((v) => v * unit.factor);
        }
      }
      const title = layout[`${name}axis`] && layout[`${name}axis`].title;
      if (title) title.text = title.text.replace(unit.text, unit.binary);
      for (const trace of traces) {
        if (trace.type === "bar" && Array.isArray(trace.text)) trace.hovertemplate = `%{${name}:.5g} ${unit.binary}<extra></extra>`;
      }
    }
  }

  // A trace is shown when every list that names it has it chosen.
  function visible(figure, chosen, index) {
    return (figure.choices || []).every((list, at) => {
      const named = list.options.some((option) => option.traces.includes(index));
      return !named || list.options[chosen[at]].traces.includes(index);
    });
  }

  function draw(id) {
    const found = live.get(id);
    const figure = data.figures[id];
    const traces = figure.data.map((trace, index) => dress({ ...copy(trace), visible: visible(figure, found.chosen, index) }));
    const layout = layoutOf(figure, found.element);
    if (figure.unit && state.binary) inBinary(figure, traces, layout);
    const heat = traces.some((trace) => trace.type === "heatmap");
    if (heat) layout.margin.t = 40;
    return window.Plotly.react(found.element, traces, layout, { displayModeBar: false, responsive: false, scrollZoom: false });
  }

  function lists(id, box) {
    const figure = data.figures[id];
    const found = live.get(id);
    if (!figure.choices || figure.choices.every((list) => list.options.length < 2)) return;
    const row = document.createElement("div");
    row.className = "choices";
    figure.choices.forEach((list, at) => {
      if (list.options.length < 2) return;
      const label = document.createElement("label");
      label.textContent = list.label;
      const select = document.createElement("select");
      list.options.forEach((option, number) => select.add(new Option(option.name, String(number))));
      select.value = String(list.at);
      select.addEventListener("change", () => {
        found.chosen[at] = Number(select.value);
        draw(id);
      });
      label.append(select);
      row.append(label);
    });
    box.querySelector("figcaption").append(row);
  }

  function library() {
    if (window.Plotly) return;
    const script = document.createElement("script");
    script.textContent = document.getElementById("plotly").textContent;
    document.head.append(script);
    script.remove();
  }

  function begin(box) {
    const id = box.id;
    const figure = data.figures[id];
    if (!figure || live.has(id)) return;
    if (figure.layout.scene && !webgl()) {
      box.dataset.drawn = "static"; // no WebGL here: the drawn surfaces stay
      return;
    }
    library();
    const stage = box.querySelector(".stage");
    const element = document.createElement("div");
    element.className = "live";
    stage.append(element);
    live.set(id, { element, chosen: (figure.choices || []).map((list) => list.at) });
    lists(id, box);
    draw(id).then(
      () => {
        stage.classList.add("drawn");
        box.dataset.drawn = "live";
        element.on("plotly_click", (event) => {
          const file = data.files[event.points[0].customdata];
          if (file) window.open("../" + file.split("/").map(encodeURIComponent).join("/"), "_blank", "noopener");
        });
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

  const again = () => live.forEach((_, id) => draw(id));
  dark.addEventListener("change", again);
  let timer = 0;
  let width = window.innerWidth;
  window.addEventListener("resize", () => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      if (window.innerWidth !== width) again();
      width = window.innerWidth;
    }, 150);
  });
  document.addEventListener("vtax:units", (event) => {
    state.binary = event.detail.binary;
    again();
  });
})();
