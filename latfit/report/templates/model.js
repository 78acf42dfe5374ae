"use strict";
// The model of the page: what a timeout t brings when every attempt is cancelled at t and submitted again.
// A law is given by its cumulative sums at the kept times `t`: F (completed), M (times of completion summed),
// G (failed) and H (times of failure summed). `steps` says that these are all the times there are; otherwise the sums
// are interpolated between them. No page is touched here: the same file runs outside a browser.

function upTo(times, x) { // how many of the rising times are at or below x
  let low = 0, high = times.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[middle] <= x) low = middle + 1; else high = middle;
  }
  return low;
}

function at(law, sums, x) { // a cumulative sum at the time x
  const n = upTo(law.t, x);
  if (n === 0) return 0;
  if (law.steps || n === law.t.length) return sums[n - 1];
  const share = (x - law.t[n - 1]) / (law.t[n] - law.t[n - 1]);
  return sums[n - 1] + share * (sums[n] - sums[n - 1]);
}

function last(values) { return values.length ? values[values.length - 1] : 0; }

function hasFailures(law) { return last(law.G) > 0; }

// E_J(t) = (M + H + c G + S (t + c)) / F, S = 1 − F − G the share still out at t.
function expectedDuration(law, t, c) {
  const F = at(law, law.F, t), G = at(law, law.G, t);
  if (!(F > 0)) return Infinity;
  let S = 1 - F - G;
  if (S < 1e-14) S = 0;
  return (at(law, law.M, t) + at(law, law.H, t) + c * G + S * (t + c)) / F;
}

function submissions(law, t) { return 1 / at(law, law.F, t); }

// The share that would never return if nothing failed, and the same law with another such share.
function outlierRatio(law) {
  if (!hasFailures(law)) return 1 - last(law.F);
  return 1 - last(risksApart(law).F);
}

function withRatio(law, rho) {
  if (!hasFailures(law)) {
    const factor = (1 - rho) / last(law.F);
    return { ...law, F: law.F.map((v) => v * factor), M: law.M.map((v) => v * factor) };
  }
  const apart = risksApart(law), scale = (1 - rho) / last(apart.F);
  const made = { ...law, F: [], M: [], G: [], H: [] };
  let unfailed = 1, before = 0, F = 0, M = 0, G = 0, H = 0;
  for (let i = 0; i < law.t.length; i++) {
    const now = apart.F[i] * scale, done = unfailed * (now - before), gone = unfailed * (1 - now) * apart.failing[i];
    F += done; G += gone;
    M += apart.done[i] > 0 ? done * apart.M[i] / apart.done[i] : 0;
    H += apart.gone[i] > 0 ? gone * apart.H[i] / apart.gone[i] : 0;
    made.F.push(F); made.M.push(M); made.G.push(G); made.H.push(H);
    unfailed *= 1 - apart.failing[i];
    before = now;
  }
  return made;
}

function risksApart(law) { // F without failures, and the hazard of failing, at every kept time; completions come first
  const found = { F: [], failing: [], done: [], gone: [], M: [], H: [] };
  const increment = (sums, i) => sums[i] - (i ? sums[i - 1] : 0);
  let out = 1, still = 1;
  for (let i = 0; i < law.t.length; i++) {
    const done = Math.max(increment(law.F, i), 0), gone = Math.max(increment(law.G, i), 0);
    const completing = done > 0 ? Math.min(Math.max(done / out, 0), 1) : 0;
    const failing = gone > 0 ? Math.min(Math.max(gone / (out - done), 0), 1) : 0;
    still *= 1 - completing;
    found.F.push(1 - still); found.failing.push(failing); found.done.push(done); found.gone.push(gone);
    found.M.push(increment(law.M, i)); found.H.push(increment(law.H, i));
    out -= done + gone;
  }
  return found;
}

function firstWith(law, level) { // the smallest time with F at or above a level
  const wanted = law.steps ? level * (1 - 1e-12) - 1e-15 : level;
  let low = 0, high = law.F.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (law.F[middle] < wanted) low = middle + 1; else high = middle;
  }
  if (low === law.F.length) return Infinity;
  if (law.steps || low === 0) return law.t[low];
  const step = law.F[low] - law.F[low - 1];
  return law.t[low - 1] + (step > 0 ? (level - law.F[low - 1]) / step : 1) * (law.t[low] - law.t[low - 1]);
}

// F_J(x) = 1 − (1 − F(t))^n (1 − F(min(x − n (t + c), t))), n = floor(x / (t + c)).
function doneBy(law, x, t, c) {
  if (hasFailures(law)) return doneByWithFailures(law, x, t, c);
  const period = t + c, later = law.steps ? x * (1 + 1e-12) : x;
  const n = Math.floor(later / period), rest = Math.min(Math.max(later - n * period, 0), t);
  return 1 - Math.pow(1 - at(law, law.F, t), n) * (1 - at(law, law.F, rest));
}

// The smallest x with F_J(x) ≥ q: n (t + c) + F⁻¹(1 − (1 − q)/(1 − F(t))^n).
function durationQuantile(law, q, t, c) {
  if (hasFailures(law)) return quantileWithFailures(law, q, t, c);
  const F = at(law, law.F, t);
  if (!(F > 0)) return Infinity;
  const target = Math.log1p(-q), out = Math.log(1 - F);
  const n = Math.max(Math.ceil(target / out * (1 - 1e-12)) - 1, 0);
  const level = Math.min(-Math.expm1(target - (n ? n * out : 0)), F);
  return n * (t + c) + Math.min(firstWith(law, level), t);
}

// Where attempts fail visibly they last differently long: F_J(x) = F(x) + Σ P(an attempt ends undone at y) F_J(x − y),
// on a lattice of CELLS steps; every time is rounded up to the lattice, so that the answer errs on the late side.
const CELLS = 1500;

function renewal(law, t, c, horizon) {
  const step = horizon / CELLS, cell = (x) => Math.ceil(x / step - 1e-9);
  const done = new Float64Array(CELLS + 1), again = new Float64Array(CELLS + 1);
  const add = (cells, x, mass) => { if (mass > 0 && cell(x) <= CELLS) cells[Math.max(cell(x), 1)] += mass; };
  const n = upTo(law.t, t);
  for (let i = 0; i < n; i++) {
    add(done, law.t[i], law.F[i] - (i ? law.F[i - 1] : 0));
    add(again, law.t[i] + c, law.G[i] - (i ? law.G[i - 1] : 0));
  }
  const cut = n ? 1 - law.F[n - 1] - law.G[n - 1] : 1;
  add(again, t + c, cut);
  const used = [];
  again.forEach((mass, k) => { if (mass > 0) used.push(k); });
  const F = new Float64Array(CELLS + 1);
  let sum = 0;
  for (let k = 1; k <= CELLS; k++) {
    sum += done[k];
    F[k] = sum;
    for (const j of used) {
      if (j >= k) break;
      F[k] += again[j] * F[k - j];
    }
  }
  return { step, F };
}

function doneByWithFailures(law, x, t, c) {
  const found = renewal(law, t, c, x);
  return Math.min(found.F[CELLS], 1);
}

function quantileWithFailures(law, q, t, c) {
  const mean = expectedDuration(law, t, c);
  if (!isFinite(mean)) return Infinity;
  for (let horizon = 4 * mean, i = 0; i < 10; i++, horizon *= 2) {
    const { step, F } = renewal(law, t, c, horizon);
    if (F[CELLS] >= q) {
      let k = 1;
      while (F[k] < q) k++;
      return k * step;
    }
  }
  return Infinity;
}

// The kept time with the least E_J among those from index `first` on.
function bestTimeout(law, c, first) {
  let best = { t: NaN, E: Infinity };
  for (let i = first; i < law.t.length; i++) {
    const E = expectedDuration(law, law.t[i], c);
    if (E < best.E) best = { t: law.t[i], E };
  }
  return best;
}

function seconds(value) { // in the unit that people read it in
  if (!isFinite(value)) return "no limit";
  const digits = (x) => Math.abs(x) >= 999.5 ? x.toFixed(0) : String(+x.toPrecision(3));
  for (const [limit, size, unit] of [[0.9995e-6, 1e9, "ns"], [0.9995e-3, 1e6, "µs"], [0.9995, 1e3, "ms"]])
    if (value > 0 && value < limit) return digits(value * size) + " " + unit;
  if (value < 3600) return digits(value) + " s";
  const [large, small, per, ratio] = value < 48 * 3600 ? ["h", "min", 60, 60] : ["d", "h", 3600, 24];
  const whole = Math.round(value / per), many = Math.floor(whole / ratio), rest = whole % ratio;
  return many + " " + large + (rest && many < 1000 ? " " + rest + " " + small : "");
}
