/** How a policy appears in plots, as a line or a point. */
export interface Mark {
  readonly name: string;
  readonly colour: string;
  /**
   * Whether the line is dashed and the point hollow. Used for bounds, which no real policy can
   * reach.
   */
  readonly hollow: boolean;
}

/** A line through one value per call. */
export interface PlotLine extends Mark {
  readonly values: readonly number[];
}

/** A point with its intervals. */
export interface PlotPoint extends Mark {
  readonly x: { readonly value: number; readonly low: number; readonly high: number };
  readonly y: { readonly value: number; readonly low: number; readonly high: number };
}

/** The labels and size of a plot. */
export interface PlotFrame {
  readonly title: string;
  readonly x: string;
  readonly y: string;
  readonly width: number;
  readonly height: number;
  readonly show?: (value: number) => string;
}

interface Range {
  readonly from: number;
  readonly to: number;
}

const MARGIN = { left: 56, right: 12, top: 24, bottom: 34 };
/** Maximum number of points of a line; more would not be visible. */
const MOST_POINTS = 120;

/** Escapes text for HTML and SVG. */
export function escapedHtml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
}

/** Returns round numbers that divide a range into about five parts. */
function ticks({ from, to }: Range): readonly number[] {
  const rough = (to - from) / 5;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((one) => one >= rough) ?? rough;
  const first = Math.ceil(from / step);
  const count = Math.floor(to / step + 1e-9) - first + 1;
  return Array.from({ length: Math.max(0, count) }, (_one, i) => (first + i) * step);
}

/** Returns the range of some values. The range is never empty, even if all values are equal. */
function rangeOf(values: readonly number[], least?: number): Range {
  const from = least ?? Math.min(...values);
  const to = Math.max(...values);
  return to > from ? { from, to } : { from: from - 0.5, to: from + 0.5 };
}

/** Adds a margin for the labels of the outermost points. */
const padded = ({ from, to }: Range): Range => ({ from: from - (to - from) / 20, to: to + (to - from) / 20 });

const short = (value: number): string => {
  if (Math.abs(value) >= 1_000_000) return `${Number((value / 1_000_000).toPrecision(3))}M`;
  if (Math.abs(value) >= 1_000) return `${Number((value / 1_000).toPrecision(3))}k`;
  return String(Number(value.toPrecision(3)));
};
const place = (value: number): string => String(Math.round(value * 10) / 10);

/** Maps values to positions in the picture. */
class Scales {
  readonly #frame: PlotFrame;
  readonly #ranges: { readonly x: Range; readonly y: Range };

  constructor(frame: PlotFrame, ranges: { readonly x: Range; readonly y: Range }) {
    this.#frame = frame;
    this.#ranges = ranges;
  }

  x(value: number): string {
    const { from, to } = this.#ranges.x;
    return place(MARGIN.left + ((value - from) / (to - from)) * (this.#frame.width - MARGIN.left - MARGIN.right));
  }

  y(value: number): string {
    const { from, to } = this.#ranges.y;
    return place(
      this.#frame.height -
        MARGIN.bottom -
        ((value - from) / (to - from)) * (this.#frame.height - MARGIN.top - MARGIN.bottom),
    );
  }

  /** Returns the picture with axes around its content. */
  svg(inside: readonly string[]): string {
    const { title, x, y, width, height, show = short } = this.#frame;
    const bottom = height - MARGIN.bottom;
    const across = ticks(this.#ranges.y).map(
      (tick) =>
        `<path class="grid" d="M${MARGIN.left} ${this.y(tick)}H${width - MARGIN.right}"/><text ` +
        `x="${MARGIN.left - 6}" y="${this.y(tick)}" class="left">${show(tick)}</text>`,
    );
    const along = ticks(this.#ranges.x).map(
      (tick) => `<text x="${this.x(tick)}" y="${bottom + 14}" class="below">${short(tick)}</text>`,
    );
    return [
      `<svg viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" ` +
        `aria-label="${escapedHtml(title)}">`,
      `<text x="${MARGIN.left}" y="14" class="title">${escapedHtml(title)}</text>`,
      ...across,
      ...along,
      `<text x="${width - MARGIN.right}" y="${height - 4}" class="axis">${escapedHtml(x)}</text>`,
      `<text x="4" y="14" class="unit">${escapedHtml(y)}</text>`,
      ...inside,
      '</svg>',
    ].join('');
  }
}

/** Returns evenly spaced values with their indexes, at most as many as a line may have. */
function thinned(values: readonly number[]): readonly (readonly [number, number])[] {
  const step = Math.max(1, values.length / MOST_POINTS);
  const places = Array.from({ length: Math.min(values.length, MOST_POINTS) }, (_one, i) =>
    Math.min(values.length - 1, Math.floor(i * step)),
  );
  return places.map((at) => [at, values[at] ?? 0]);
}

/** Draws one line for each policy over the calls of a session. */
export function linePlot(frame: PlotFrame, lines: readonly PlotLine[]): string {
  const longest = Math.max(1, ...lines.map(({ values }) => values.length - 1));
  const all = lines.flatMap(({ values }) => values);
  const scales = new Scales(frame, { x: { from: 0, to: longest }, y: rangeOf(all.length === 0 ? [0] : all, 0) });
  return scales.svg(
    lines.map(({ name, colour, hollow, values }) => {
      const path = thinned(values).map(([x, y], i) => `${i === 0 ? 'M' : 'L'}${scales.x(x)} ${scales.y(y)}`);
      const dashes = hollow ? ' stroke-dasharray="4 3"' : '';
      return (
        `<path class="line" stroke="${colour}"${dashes} ` +
        `d="${path.join('')}"><title>${escapedHtml(name)}</title></path>`
      );
    }),
  );
}

/** Points beyond this multiple of the median are drawn at the edge, with their value. */
const MOST_STRETCH = 2;
/** The width of the column of labels, and the height of one label. */
const LABELS = { width: 270, height: 13 };

/**
 * Returns label positions that are at least one label's height apart, in the same order, and as
 * near as possible to the wanted positions.
 */
export function spread(wanted: readonly number[], from: number, to: number): readonly number[] {
  const order = wanted.map((_one, at) => at).sort((a, b) => (wanted[a] ?? 0) - (wanted[b] ?? 0));
  const step = Math.min(LABELS.height, (to - from) / Math.max(1, wanted.length));
  const placed = new Array<number>(wanted.length).fill(from);
  let next = from;
  for (const at of order) {
    next = Math.max(next, wanted[at] ?? from);
    placed[at] = next;
    next += step;
  }
  let limit = to;
  for (const at of order.toReversed()) {
    limit = Math.min(limit, placed[at] ?? to);
    placed[at] = limit;
    limit -= step;
  }
  return placed;
}

/**
 * Draws one point for each policy, with its intervals as a cross. Labels form a column next to the
 * plot, and lines join them to their points. Policies far beyond the median are drawn at the edge,
 * so that they do not stretch the axis.
 */
export function pointPlot(frame: PlotFrame, points: readonly PlotPoint[]): string {
  const values = points.map(({ x }) => x.value).sort((a, b) => a - b);
  const edge = MOST_STRETCH * (values[Math.floor(values.length / 2)] ?? 1);
  const inside = points.filter(({ x }) => x.value <= edge);
  const inner = { ...frame, width: frame.width - LABELS.width };
  const scales = new Scales(inner, {
    x: padded(rangeOf(inside.flatMap(({ x }) => [x.low, Math.min(x.high, edge), x.value]))),
    y: padded(rangeOf(points.map(({ y }) => y.value))),
  });
  const places = points.map(({ x, y }) => ({
    x: scales.x(Math.min(x.value, edge)),
    y: scales.y(y.value),
    low: scales.x(x.low),
    high: scales.x(Math.min(x.high, edge)),
  }));
  const labels = spread(
    places.map(({ y }) => Number(y)),
    MARGIN.top,
    frame.height - MARGIN.bottom,
  );
  const column = inner.width + 14;
  return scales
    .svg(
      points.map(({ name, colour, hollow, x }, i) => {
        const { x: at = '0', y = '0', low = '0', high = '0' } = places[i] ?? {};
        const label = labels[i] ?? 0;
        const far = x.value > edge ? ` (cost ${x.value.toFixed(2)})` : '';
        const across = x.value > edge ? '' : `<path class="interval" stroke="${colour}" d="M${low} ${y}H${high}"/>`;
        return (
          `<g><title>${escapedHtml(name)}</title>${across}` +
          `<path class="leader" d="M${at} ${y}L${column - 4} ${place(label)}"/><circle cx="${at}" cy="${y}" r="4.5" ` +
          `fill="${hollow ? 'none' : colour}" stroke="${colour}"/><text x="${column}" y="${place(label + 4)}" ` +
          `class="point">${escapedHtml(name + far)}</text></g>`
        );
      }),
    )
    .replace(`viewBox="0 0 ${inner.width} `, `viewBox="0 0 ${frame.width} `)
    .replace(`width="${inner.width}"`, `width="${frame.width}"`);
}
