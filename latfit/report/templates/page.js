// The page: a curve to drag, sliders, tables that sort. Text goes in by textContent only.
(function () {
  const $ = (id) => document.getElementById(id);
  const given = JSON.parse($("data").textContent);
  const numbers = (text) => {
    const bytes = Uint8Array.from(atob(text || ""), (c) => c.charCodeAt(0)), view = new DataView(bytes.buffer);
    return Array.from({ length: bytes.length / 8 }, (_, i) => view.getFloat64(8 * i, true));
  };
  const shape = (tag, attributes, parent, text) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const name in attributes) made.setAttribute(name, attributes[name]);
    if (text !== undefined) made.textContent = text;
    if (parent) parent.appendChild(made);
    return made;
  };

  function model() {
    const law = { steps: given.law.steps };
    for (const name of ["t", "F", "M", "G", "H"]) law[name] = numbers(given.law[name]);
    for (const name of ["G", "H"]) if (!law[name].length) law[name] = law.t.map(() => 0);
    const [low, high] = given.span, rho0 = outlierRatio(law);
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
      draw(changed, state, least);
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
    const draw = curve.draw;
    update("all");
    new ResizeObserver(() => draw(changed, state, least)).observe($("curve"));
  }

  function ticks(low, high, log, most) {
    const found = [];
    if (log) {
      for (let p = Math.floor(Math.log10(low)); p <= Math.ceil(Math.log10(high)); p++)
        for (const d of [1, 2, 5]) if (d * 10 ** p < 3600) found.push(d * 10 ** p);
      for (const h of [1, 2, 5, 12]) found.push(3600 * h);
      for (let p = 0; p < 5; p++) for (const d of [1, 2, 5]) found.push(86400 * d * 10 ** p);
      const inside = found.filter((v) => v >= low && v <= high);
      const each = Math.ceil(inside.length / most);
      return inside.filter((_, i) => i % each === 0);
    }
    const raw = (high - low) / 5, size = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map((m) => m * size).find((s) => s >= raw * (1 - 1e-9));
    for (let k = Math.ceil(low / step); k * step <= high; k++) found.push(k * step);
    return found;
  }

  function curveOf(state, update, say, low, high) {
    const holder = $("curve"), edge = { left: 76, right: 18, top: 14, bottom: 46 };
    const svg = shape("svg", { class: "chart", role: "group", "aria-label": "Expected duration against the timeout" });
    holder.querySelector("svg").replaceWith(svg);
    let width = 0, height = 0, handle = null;
    const x = (t) => edge.left + Math.log(t / low) / Math.log(high / low) * (width - edge.left - edge.right);
    const keep = (t) => Math.min(Math.max(t, low), high);

    function draw(law, now, least) {
      width = Math.max(holder.clientWidth - 30, 240);
      height = Math.min(Math.max(0.75 * width, 260), 430);
      const bottom = height - edge.bottom, right = width - edge.right, focused = document.activeElement === handle;
      svg.setAttribute("viewBox", "0 0 " + width + " " + height);
      svg.replaceChildren();
      const times = Array.from({ length: 260 }, (_, i) => low * Math.pow(high / low, i / 259)).concat(least.t, now.t);
      times.sort((a, b) => a - b);
      const E = times.map((t) => expectedDuration(law, t, now.c)), end = E[E.length - 1];
      const here = expectedDuration(law, now.t, now.c);
      const top = least.E * Math.min(4, Math.max(2.2, isFinite(end) ? 1.05 * end / least.E : 2.2)), base = 0.9 * least.E;
      const y = (value) => Math.max(bottom - (value - base) / (top - base) * (bottom - edge.top), edge.top - 3);
      for (const v of ticks(low, high, true, width < 420 ? 4 : 6)) {
        shape("line", { class: "grid", x1: x(v), x2: x(v), y1: edge.top, y2: bottom }, svg);
        shape("text", { x: x(v), y: bottom + 16, "text-anchor": "middle" }, svg, seconds(v));
      }
      for (const v of ticks(base, top, false)) {
        shape("line", { class: "grid", x1: edge.left, x2: right, y1: y(v), y2: y(v) }, svg);
        shape("text", { x: edge.left - 6, y: y(v) + 4, "text-anchor": "end" }, svg, seconds(v));
      }
      const inside = times.filter((_, i) => E[i] <= 1.05 * least.E);
      if (inside.length) {
        let a = times.indexOf(least.t), b = a;
        while (a > 0 && E[a - 1] <= 1.05 * least.E) a--;
        while (b < times.length - 1 && E[b + 1] <= 1.05 * least.E) b++;
        shape("rect", { class: "window", x: x(times[a]), width: Math.max(x(times[b]) - x(times[a]), 1), y: edge.top, height: bottom - edge.top }, svg);
      }
      const path = (points) => {
        let pen = false, text = "";
        for (const [t, value] of points) {
          const ok = isFinite(value) && value <= top;
          if (ok) text += (pen ? "L" : "M") + x(t).toFixed(1) + " " + y(value).toFixed(1);
          pen = ok;
        }
        return text;
      };
      shape("path", { class: "s0", d: path(times.map((t, i) => [t, E[i]])) }, svg);
      if (now.c === given.cost && given.replay.length) shape("path", { class: "s2", d: path(given.replay) }, svg);
      handle = shape("g", { class: "handle", tabindex: 0, role: "slider", "aria-label": "Timeout", "aria-valuemin": low,
        "aria-valuemax": high, "aria-valuenow": now.t,
        "aria-valuetext": seconds(now.t) + ", expected duration " + seconds(here) }, svg);
      shape("line", { class: "chosen", x1: x(now.t), x2: x(now.t), y1: edge.top, y2: bottom }, handle);
      shape("circle", { class: "dot", cx: x(now.t), cy: y(here), r: 7 }, handle);
      const leftward = x(now.t) > width * 0.55;
      shape("text", { class: "mark", x: x(now.t) + (leftward ? -8 : 8), y: edge.top + 8, "text-anchor": leftward ? "end" : "start" },
        handle, seconds(now.t) + " → " + seconds(here));
      handle.addEventListener("keydown", keys);
      if (focused) handle.focus();
      shape("text", { class: "axis", x: (edge.left + right) / 2, y: height - 8, "text-anchor": "middle" }, svg, "timeout (logarithmic)");
      shape("text", { class: "axis", "text-anchor": "middle", transform: "translate(12 " + (edge.top + bottom) / 2 + ") rotate(-90)" }, svg, "expected duration");
    }

    function keys(event) {
      const step = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 10, PageDown: -10 }[event.key];
      const ends = { Home: low, End: high }[event.key];
      if (step === undefined && ends === undefined) return;
      event.preventDefault();
      state.t = ends || keep(state.t * Math.pow(high / low, step / 200));
      update("t");
    }

    function drag(event) {
      const box = svg.getBoundingClientRect(), px = (event.clientX - box.left) * width / box.width;
      state.t = keep(low * Math.pow(high / low, (px - edge.left) / (width - edge.left - edge.right)));
      update("t");
    }
    svg.addEventListener("pointerdown", (event) => { svg.setPointerCapture(event.pointerId); drag(event); });
    svg.addEventListener("pointermove", (event) => { if (svg.hasPointerCapture(event.pointerId)) drag(event); });
    svg.addEventListener("pointerup", say);
    return { draw };
  }

  function sortable(table) {
    const body = table.tBodies[0], heads = Array.from(table.tHead.rows[0].cells);
    heads.forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = head.textContent;
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

  document.querySelectorAll("table.sorts").forEach(sortable);
  addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((one) => { one.open = true; }));
  if (given.law) {
    $("controls").hidden = $("numbers").hidden = false;
    model();
  }
})();
