// The page: charts, a curve to drag, sliders, tables that sort and search. Text goes in by textContent only.
(function () {
  const $ = (id) => document.getElementById(id), HINT = "Point at the figure to read values.";
  const given = JSON.parse($("data").textContent);
  const numbers = (text) => {
    const bytes = Uint8Array.from(atob(text || ""), (c) => c.charCodeAt(0)), view = new DataView(bytes.buffer);
    return Array.from({ length: bytes.length / 8 }, (_, i) => view.getFloat64(8 * i, true));
  };
  const shape = (tag, attributes, parent, text) => {
    const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const name in attributes) node.setAttribute(name, attributes[name]);
    if (text !== undefined) node.textContent = text;
    if (parent) parent.appendChild(node);
    return node;
  };
  const element = (tag, properties, parent) => {
    const node = Object.assign(document.createElement(tag), properties);
    if (parent) parent.appendChild(node);
    return node;
  };

  // Axes: where a value lies, a few round values, and how to write one.
  function ticks(axis, most) {
    const { low, high, kind, log } = axis, values = [];
    if (kind === "date") {
      const step = [1, 5, 15, 60, 300, 900, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800, 2592000, 7776000, 31536000, 315360000]
        .find((s) => (high - low) / s <= most);
      for (let k = Math.ceil(low / step); k * step <= high; k++) values.push(k * step);
      return values;
    }
    if (log) {
      for (let p = Math.floor(Math.log10(low)); p <= Math.ceil(Math.log10(high)); p++)
        for (const d of [1, 2, 5]) if (kind !== "time" || d * 10 ** p < 3600) values.push(d * 10 ** p);
      if (kind === "time") {
        for (const h of [1, 2, 5, 12]) values.push(3600 * h);
        for (let p = 0; p < 5; p++) for (const d of [1, 2, 5]) values.push(86400 * d * 10 ** p);
      }
      const inside = values.filter((v) => v >= low * (1 - 1e-9) && v <= high * (1 + 1e-9));
      const each = Math.ceil(inside.length / most);
      if (inside.length >= 3) return inside.filter((_, i) => i % each === 0);
      values.length = 0;
    }
    const raw = (high - low) / 5, size = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map((m) => m * size).find((s) => s >= raw * (1 - 1e-9));
    for (let k = Math.ceil(low / step - 1e-9); k * step <= high * (1 + 1e-9); k++) values.push(k * step);
    return values;
  }
  function written(axis, value) {
    if (axis.kind === "time") return seconds(value);
    if (axis.kind === "share") return +(100 * value).toPrecision(3) + " %";
    if (axis.kind === "count") return String(+value.toPrecision(3));
    const text = new Date(1000 * value).toISOString();
    return axis.high - axis.low > 3 * 86400 ? text.slice(axis.high - axis.low > 2e7 ? 0 : 5, 10) : text.slice(5, 16).replace("T", " ");
  }

  // One frame for every figure: grid, axes, labels; x and y give pixels, and inside the frame everything is clipped.
  let clips = 0;
  function frame(svg, chart, width, height) {
    const edge = { left: 70, right: 16, top: 14, bottom: 46 }, right = width - edge.right, bottom = height - edge.bottom;
    const scale = (axis, from, to) => (value) => from + (to - from) * (axis.log
      ? Math.log(value / axis.low) / Math.log(axis.high / axis.low) : (value - axis.low) / ((axis.high - axis.low) || 1));
    const x = scale(chart.x, edge.left, right), y = scale(chart.y, bottom, edge.top);
    svg.setAttribute("viewBox", "0 0 " + width + " " + height);
    svg.replaceChildren();
    const most = Math.max(2, Math.min(6, Math.floor(width / (chart.x.kind === "date" ? 120 : 70))));
    for (const v of ticks(chart.x, most)) {
      shape("line", { class: "grid", x1: x(v), x2: x(v), y1: edge.top, y2: bottom }, svg);
      shape("text", { x: x(v), y: bottom + 16, "text-anchor": "middle" }, svg, written(chart.x, v));
    }
    for (const v of ticks(chart.y, 6)) {
      shape("line", { class: "grid", x1: edge.left, x2: right, y1: y(v), y2: y(v) }, svg);
      shape("text", { x: edge.left - 6, y: y(v) + 4, "text-anchor": "end" }, svg, written(chart.y, v));
    }
    shape("text", { class: "axis", x: (edge.left + right) / 2, y: height - 8, "text-anchor": "middle" }, svg, chart.x.label + (chart.x.log ? " (logarithmic)" : ""));
    shape("text", { class: "axis", "text-anchor": "middle", transform: "translate(12 " + (edge.top + bottom) / 2 + ") rotate(-90)" }, svg, chart.y.label);
    const id = "clip-" + ++clips;
    shape("rect", { x: edge.left, y: edge.top, width: Math.max(right - edge.left, 1), height: Math.max(bottom - edge.top, 1) }, shape("clipPath", { id }, svg));
    const inside = shape("g", { "clip-path": "url(#" + id + ")" }, svg);
    const path = (xs, ys, steps) => {
      let pen = false, text = "";
      xs.forEach((v, i) => {
        const known = ys[i] !== null && isFinite(ys[i]) && (!chart.y.log || ys[i] > 0);
        if (known) {
          const a = x(v).toFixed(1), b = Math.max(y(ys[i]), edge.top - 40).toFixed(1);
          text += !pen ? "M" + a + " " + b : steps ? "H" + a + "V" + b : "L" + a + " " + b;
        }
        pen = known;
      });
      return text;
    };
    const upright = (at, style, text, row) => {
      if (!(x(at) >= edge.left - 1 && x(at) <= right + 1)) return;
      shape("line", { class: style, x1: x(at), x2: x(at), y1: edge.top, y2: bottom }, inside);
      const leftward = x(at) > edge.left + 0.6 * (right - edge.left);
      if (text) shape("text", { class: "mark", x: x(at) + (leftward ? -4 : 4), y: edge.top + 10 + 14 * (row || 0), "text-anchor": leftward ? "end" : "start" }, svg, text);
    };
    return { x, y, edge, right, bottom, inside, path, upright };
  }

  function valueAt(line, x) { // of a line with rising x; steps keep the value of the point before
    const n = upTo(line.x, x);
    if (n === 0) return null;
    if (line.steps || n === line.x.length) return line.x[n - 1] === x || line.steps ? line.y[n - 1] : n === line.x.length && line.x[n - 1] < x ? null : line.y[n - 1];
    const a = line.y[n - 1], b = line.y[n];
    return a === null || b === null ? null : a + (b - a) * (x - line.x[n - 1]) / (line.x[n] - line.x[n - 1]);
  }

  // What a chart shows inside its frame: areas, lines with or without dots, points and upright lines.
  function shapes(view, chart) {
    for (const band of chart.bands) {
      const points = band.x.map((v, i) => view.x(v).toFixed(1) + "," + view.y(band.high[i]).toFixed(1))
        .concat(band.x.map((v, i) => view.x(v).toFixed(1) + "," + view.y(band.low[i]).toFixed(1)).reverse());
      shape("polygon", { class: band.style, points: points.join(" ") }, view.inside);
    }
    for (const line of chart.lines) {
      shape("path", { class: line.style, d: view.path(line.x, line.y, line.steps) }, view.inside);
      if (line.dots) line.x.forEach((v, i) => { if (line.y[i] !== null) shape("circle", { class: "small of-" + line.style, cx: view.x(v), cy: view.y(line.y[i]), r: 3 }, view.inside); });
    }
    chart.marks.forEach((mark, i) => {
      if (mark.y === null) view.upright(mark.x, mark.style, mark.name, i % 3);
      else shape("circle", { class: mark.style, cx: view.x(mark.x), cy: view.y(mark.y), r: 5 }, view.inside);
    });
  }
  function legend(figure, drawn) {
    const named = drawn.filter((one, i, all) => one.name && all.findIndex((other) => other.name === one.name) === i);
    if (!named.length) return;
    const list = element("ul", { className: "legend" });
    figure.querySelector(".drawing").after(list);
    for (const one of named) {
      const item = element("li", {}, list), key = shape("svg", { width: 28, height: 10, "aria-hidden": "true" }, item);
      shape("line", { class: one.style, x1: 1, x2: 27, y1: 5, y2: 5 }, key);
      item.append(one.name);
    }
  }

  // A chart that stands still, with a readout under the pointer and, once it has the focus, by the arrow keys.
  function still(figure, chart) {
    const svg = shape("svg", { class: "chart", role: "img", tabindex: 0, "aria-label": chart.title + ": " + chart.y.label + " against " + chart.x.label + ". Arrow keys read values." });
    figure.querySelector(".drawing").replaceChildren(svg);
    const readout = element("p", { className: "readout soft" }, figure);
    readout.setAttribute("role", "status");
    readout.textContent = HINT;
    let view = null, cursor = null, width = 0;
    function draw() {
      width = Math.max(figure.clientWidth - 30, 240);
      view = frame(svg, chart, width, Math.min(Math.max(0.5 * width, 230), 340));
      shapes(view, chart);
      cursor = shape("line", { class: "cursor", visibility: "hidden", y1: view.edge.top, y2: view.bottom }, svg);
    }
    legend(figure, chart.lines.concat(chart.bands));
    let place = 0.5;
    function read() {
      const axis = chart.x, at = axis.log ? axis.low * Math.pow(axis.high / axis.low, place) : axis.low + place * (axis.high - axis.low);
      const values = chart.lines.filter((line) => line.name && !line.dots).map((line) => [line.name, valueAt(line, at)]).filter(([, v]) => v !== null);
      readout.textContent = written({ ...axis, high: axis.kind === "date" ? axis.low + 1 : axis.high }, at) + ": " + (values.map(([name, v]) => name + " " + written(chart.y, v)).join(", ") || "–");
      cursor.setAttribute("x1", view.x(at));
      cursor.setAttribute("x2", view.x(at));
      cursor.setAttribute("visibility", "visible");
    }
    const clear = () => { cursor.setAttribute("visibility", "hidden"); readout.textContent = HINT; };
    svg.addEventListener("pointermove", (event) => {
      const box = svg.getBoundingClientRect(), px = (event.clientX - box.left) * width / box.width;
      place = Math.min(Math.max((px - view.edge.left) / (view.right - view.edge.left), 0), 1);
      read();
    });
    svg.addEventListener("pointerleave", clear);
    svg.addEventListener("blur", clear);
    svg.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 0.02, ArrowLeft: -0.02, Home: -1, End: 1 }[event.key];
      if (step === undefined) return;
      event.preventDefault();
      place = Math.min(Math.max(place + step, 0), 1);
      read();
    });
    draw();
    new ResizeObserver(draw).observe(figure);
  }

  function model() {
    const law = { steps: given.law.steps };
    for (const name of ["t", "F", "M", "G", "H"]) law[name] = numbers(given.law[name]);
    for (const name of ["G", "H"]) if (!law[name].length) law[name] = law.t.map(() => 0);
    const { low, high } = given.curve.x, rho0 = outlierRatio(law);
    const start = { t: given.timeout || given.cutoff, c: given.cost, rho: rho0, D: given.deadline };
    const state = { ...start };
    let changed = law, least = null;
    const spread = (value, a, b) => a * Math.pow(b / a, value / 1000), place = (v, a, b) => 1000 * Math.log(v / a) / Math.log(b / a);
    const sliders = {
      t: [(v) => spread(v, low, high), (x) => place(x, low, high), seconds],
      c: [(v) => given.most_cost * (v / 1000) ** 2, (x) => 1000 * Math.sqrt(x / given.most_cost), seconds],
      rho: [(v) => 0.9 * (v / 1000) ** 2, (x) => 1000 * Math.sqrt(x / 0.9), (x) => (100 * x * (1 + 1e-12)).toFixed(2) + " %"],
      D: [(v) => spread(v, low, 4 * high), (x) => place(x, low, 4 * high), seconds],
    };

    function figures(t) {
      const share = doneBy(changed, state.D, t, state.c);
      return { t: seconds(t), E: seconds(expectedDuration(changed, t, state.c)),
        q50: seconds(durationQuantile(changed, 0.5, t, state.c)), q95: seconds(durationQuantile(changed, 0.95, t, state.c)),
        q99: seconds(durationQuantile(changed, 0.99, t, state.c)), N: submissions(changed, t).toFixed(2),
        D: (100 * share).toFixed(1) + " %" };
    }

    function table() {
      const columns = { yours: figures(state.t), least: figures(least.t), cutoff: figures(given.cutoff) };
      for (const column in columns)
        for (const row in columns[column]) $(column + "-" + row).textContent = columns[column][row];
      for (const name in sliders) {
        const [, back, words] = sliders[name];
        $("s-" + name).value = Math.min(Math.max(back(state[name]), 0), 1000);
        $("s-" + name).setAttribute("aria-valuetext", words(state[name]));
        $("o-" + name).textContent = words(state[name]);
      }
    }

    function update(what) {
      if (what !== "t" && what !== "D") {
        changed = state.rho === rho0 ? law : withRatio(law, state.rho);
        least = bestTimeout(changed, state.c, given.first);
      }
      table();
      curve.draw(changed, state, least, state.c === start.c && state.rho === rho0);
      window.latfit = { E: expectedDuration(changed, state.t, state.c), state: { ...state } };
    }

    for (const name in sliders) $("s-" + name).addEventListener("input", (event) => {
      state[name] = sliders[name][0](+event.target.value);
      update(name);
    });
    $("to-best").addEventListener("click", () => { state.t = least.t; update("t"); say(); });
    $("as-logged").addEventListener("click", () => { Object.assign(state, start); update("all"); say(); });
    function say() { $("said").textContent = "Timeout " + $("yours-t").textContent + ": expected duration " + $("yours-E").textContent; }
    $("controls").addEventListener("change", say);
    const curve = curveOf(state, update, say, low, high);
    update("all");
    new ResizeObserver(() => update("t")).observe($("curve"));
  }

  function curveOf(state, update, say, low, high) {
    const holder = $("curve"), readout = $("read-curve"), chart = given.curve;
    const logged = { name: "if attempts are independent", style: "s0" }, overlay = { ...chart, marks: chart.marks.filter((mark) => mark.y === null) };
    const svg = shape("svg", { class: "chart", role: "group", "aria-label": "Mean time of a job against the timeout" });
    holder.querySelector(".drawing").replaceChildren(svg);
    legend(holder, [logged].concat(chart.lines, chart.bands));
    let width = 0, view = null, handle = null, law = null;
    const keep = (t) => Math.min(Math.max(t, low), high);
    const timeAt = (event) => {
      const box = svg.getBoundingClientRect(), px = (event.clientX - box.left) * width / box.width;
      return keep(low * Math.pow(high / low, (px - view.edge.left) / (view.right - view.edge.left)));
    };

    function draw(changed, now, least, asLogged) {
      law = changed;
      width = Math.max(holder.clientWidth - 30, 240);
      const focused = document.activeElement === handle;
      const times = Array.from({ length: 260 }, (_, i) => low * Math.pow(high / low, i / 259)).concat(least.t, now.t).sort((a, b) => a - b);
      const E = times.map((t) => expectedDuration(law, t, now.c)), end = E[E.length - 1], here = expectedDuration(law, now.t, now.c);
      const top = least.E * Math.min(4, Math.max(2.2, isFinite(end) ? 1.05 * end / least.E : 2.2));
      view = frame(svg, { x: chart.x, y: { ...chart.y, low: 0.85 * least.E, high: top } }, width, Math.min(Math.max(0.45 * width, 250), 340));
      const { x, y, edge, bottom, inside } = view;
      if (asLogged) shapes(view, overlay);
      shape("path", { class: "s0", d: view.path(times, E) }, inside);
      const clipped = times.findIndex((_, i) => E[i] <= top);
      if (clipped > 0 && width > 400) shape("text", { class: "clipped", x: x(times[clipped]) + 4, y: edge.top + 10 }, svg, "↑ goes on above");
      handle = shape("g", { class: "handle", tabindex: 0, role: "slider", "aria-label": "Timeout", "aria-valuemin": low,
        "aria-valuemax": high, "aria-valuenow": now.t, "aria-valuetext": seconds(now.t) + ", expected duration " + seconds(here) }, svg);
      shape("line", { class: "chosen", x1: x(now.t), x2: x(now.t), y1: edge.top, y2: bottom }, handle);
      if (here <= top) shape("circle", { class: "dot", cx: x(now.t), cy: y(here), r: 7 }, handle);
      const leftward = x(now.t) > width * 0.6;
      shape("text", { class: "mark", x: x(now.t) + (leftward ? -10 : 10), y: (here <= top ? Math.min(y(here) + 20, bottom - 6) : bottom - 6), "text-anchor": leftward ? "end" : "start" },
        handle, seconds(now.t) + " → " + seconds(here));
      handle.addEventListener("keydown", keys);
      if (focused) handle.focus();
    }

    function keys(event) {
      const step = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 10, PageDown: -10 }[event.key];
      const ends = { Home: low, End: high }[event.key];
      if (step === undefined && ends === undefined) return;
      event.preventDefault();
      state.t = ends || keep(state.t * Math.pow(high / low, step / 200));
      update("t");
    }
    function drag(event) { state.t = timeAt(event); update("t"); }
    svg.addEventListener("pointerdown", (event) => { event.preventDefault(); svg.setPointerCapture(event.pointerId); drag(event); });
    svg.addEventListener("pointermove", (event) => {
      if (svg.hasPointerCapture(event.pointerId)) drag(event);
      const t = timeAt(event);
      readout.textContent = "A timeout of " + seconds(t) + ", repeated: " + seconds(expectedDuration(law, t, state.c)) + " a job, " + submissions(law, t).toFixed(2) + " submissions.";
    });
    readout.textContent = HINT;
    svg.addEventListener("pointerleave", () => { readout.textContent = HINT; });
    svg.addEventListener("pointerup", say);
    return { draw };
  }

  function risk() {
    const slider = $("s-risk"), show = () => {
      const at = given.risks[+slider.value];
      $("o-risk").textContent = at.risk;
      $("risk-says").textContent = at.says;
      slider.setAttribute("aria-valuetext", at.risk + ": " + at.says);
    };
    slider.max = given.risks.length - 1;
    slider.value = given.risks.findIndex((at) => at.chosen);
    slider.addEventListener("input", show);
    show();
  }

  function sortable(table) {
    const body = table.tBodies[0], heads = Array.from(table.tHead.rows[0].cells);
    heads.forEach((head, column) => {
      const button = element("button", { type: "button", textContent: head.textContent });
      head.replaceChildren(button);
      button.addEventListener("click", () => {
        const rising = head.getAttribute("aria-sort") !== "ascending";
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", rising ? "ascending" : "descending");
        const key = (row) => {
          const cell = row.cells[column], value = cell.dataset.v;
          return value === undefined ? cell.textContent : value === "" ? NaN : +value;
        };
        const order = (a, b) => typeof a === "string" ? a.localeCompare(b, undefined, { numeric: true }) : a - b;
        const rows = Array.from(body.rows).map((row) => [key(row), row]);
        const known = rows.filter(([value]) => value === value), unknown = rows.filter(([value]) => value !== value);
        known.sort(([a], [b]) => rising ? order(a, b) : order(b, a));
        for (const [, row] of known.concat(unknown)) body.appendChild(row);
      });
    });
  }

  // The middle 90 % of each group's latencies, their median, and its first timeout, all on one logarithmic axis.
  function intervalDots(cells) {
    const times = cells.map((cell) => cell.dataset.dots.split(",").map(Number)), ends = times.flatMap((four) => four.slice(0, 3));
    const first = Math.max(Math.min(...ends), 1e-9), span = Math.log(Math.max(...ends) / first) || 1;
    const x = (time) => 4 + 152 * Math.min(Math.max(Math.log(Math.max(time, first) / first) / span, 0), 1);
    cells.forEach((cell, i) => drawDots(cell, x, ...times[i]));
  }

  function drawDots(cell, x, low, middle, high, timeout) {
    const svg = shape("svg", { width: 160, height: 14, "aria-hidden": "true", class: "dots" });
    shape("line", { class: "s0", x1: x(low), x2: x(high), y1: 7, y2: 7 }, svg);
    shape("circle", { class: "small", cx: x(middle), cy: 7, r: 3.5 }, svg);
    if (timeout !== undefined) shape("line", { class: "set", x1: x(timeout), x2: x(timeout), y1: 1, y2: 13 }, svg);
    cell.appendChild(svg);
  }

  function copying(pre) {
    const button = element("button", { type: "button", className: "copy", textContent: "Copy" });
    pre.before(button);
    button.addEventListener("click", () => {
      const said = (text) => { button.textContent = text; setTimeout(() => { button.textContent = "Copy"; }, 2000); };
      const select = () => { getSelection().selectAllChildren(pre); said(document.execCommand("copy") ? "Copied" : "Selected: press Ctrl+C"); };
      if (navigator.clipboard) navigator.clipboard.writeText(pre.textContent).then(() => said("Copied"), select); else select();
    });
  }

  document.querySelectorAll("table.sorts").forEach(sortable);
  intervalDots(Array.from(document.querySelectorAll("td[data-dots]")));
  document.querySelectorAll("pre").forEach(copying);
  (given.charts || []).forEach((chart, i) => still($("chart-" + i), chart));
  document.querySelectorAll("input[type=search]").forEach((input) => input.addEventListener("input", () => {
    const wanted = input.value.toLowerCase();
    let shown = 0;
    for (const row of $(input.dataset.table).tBodies[0].rows) {
      row.hidden = !row.cells[0].textContent.toLowerCase().includes(wanted);
      shown += !row.hidden;
    }
    $("found").textContent = wanted ? shown + " shown" : "";
  }));
  if ((given.risks || []).length) risk();
  document.querySelectorAll(".scripted").forEach((one) => { one.hidden = false; });
  if (given.law) model();
})();
