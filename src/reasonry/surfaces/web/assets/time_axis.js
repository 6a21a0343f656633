// Run time on a line. A long wait in which nothing was asked (a night between crash and resume) is drawn short.

const LONG_SHARE = 0.25; // of the busy time: a wait longer than this is cut
const CUT_SHARE = 0.05; // and drawn this long

/**
 * @param {{ from: number, to: number }[]} spans
 * @returns {{ at(ms: number): number, cuts: Instant[], ticks: Instant[], busy: number }}
 *   `at` gives 0 for the first instant and 1 for the last
 * @typedef {{ share: number, ms: number }} Instant
 */
export function makeAxis(spans) {
  const busy = united(spans);
  const total = Math.max(1, busy.reduce((sum, { from, to }) => sum + to - from, 0));
  const pieces = []; // { from, to, at, scale }
  const cuts = [];
  let length = 0;
  for (const [index, span] of busy.entries()) {
    const wait = index ? span.from - busy[index - 1].to : 0;
    if (wait > 0) {
      const drawn = wait > total * LONG_SHARE ? total * CUT_SHARE : wait;
      if (drawn < wait) cuts.push({ length: length + drawn / 2, ms: wait });
      pieces.push({ from: span.from - wait, to: span.from, at: length, scale: drawn / wait });
      length += drawn;
    }
    pieces.push({ ...span, at: length, scale: 1 });
    length += span.to - span.from;
  }
  length = Math.max(1, length);
  const at = (ms) => {
    const piece = pieces.find(({ to }) => ms <= to) ?? pieces[pieces.length - 1];
    const within = piece ? piece.at + Math.max(0, ms - piece.from) * piece.scale : 0;
    return Math.min(1, within / length);
  };
  const end = busy.length ? busy[busy.length - 1].to : 0;
  return {
    at,
    busy: length,
    cuts: cuts.map((cut) => ({ share: cut.length / length, ms: cut.ms })),
    ticks: apart(roundTimes(length, end).map((ms) => ({ share: at(ms), ms }))),
  };
}

function united(spans) {
  const busy = [];
  for (const { from, to } of [...spans].sort((a, b) => a.from - b.from)) {
    const last = busy[busy.length - 1];
    if (last && from <= last.to) last.to = Math.max(last.to, to);
    else busy.push({ from, to });
  }
  return busy;
}

/** Round instants, about six over what is drawn. */
function roundTimes(length, end) {
  const wish = length / 6;
  const power = 10 ** Math.floor(Math.log10(wish));
  const step = Math.max(1, [1, 2, 5, 10].find((factor) => factor * power >= wish) * power);
  const times = [];
  for (let ms = 0; ms <= end && times.length < 40; ms += step) times.push(ms);
  return times;
}

/** Without those whose words would stand in one another, as at a wait drawn short. */
function apart(ticks) {
  const kept = [];
  for (const tick of ticks) if (!kept.length || tick.share - kept[kept.length - 1].share > 0.08) kept.push(tick);
  return kept.filter(({ share }) => share < 0.88);
}

/** Puts spans that overlap into different lanes; `least` is the shortest span that can still be seen. */
export function packLanes(spans, least) {
  const ends = [];
  return spans.map(({ from, to }) => {
    const free = ends.findIndex((end) => end <= from);
    const lane = free === -1 ? ends.length : free;
    ends[lane] = Math.max(to, from + least);
    return lane;
  });
}
