import { useEffect, useRef, useState } from 'preact/hooks';
import type uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { shortCount } from './words.js';

/** One line or area of a chart. */
export interface ChartSeries {
  readonly name: string;
  /** The name of a CSS variable with a colour, such as `--data-text`. */
  readonly color: string;
  readonly values: readonly (number | null)[];
  readonly draws: 'line' | 'steps' | 'area' | 'bars';
  /** Whether the values belong to the axis on the right. */
  readonly isRight?: boolean;
  readonly isDashed?: boolean;
  readonly width?: number;
}

interface ChartProps {
  readonly label: string;
  readonly series: readonly ChartSeries[];
  /** Height in pixels. */
  readonly height: number;
  readonly left: { readonly label: string; readonly size: number };
  readonly leftFormat?: (n: number) => string;
  readonly right?: { readonly label: string; readonly size: number; readonly format?: (n: number) => string };
  /** Space on the right in pixels, if there is no axis. */
  readonly padRight?: number;
  /** The column to emphasise. */
  readonly chosen?: number | undefined;
  /** Number of columns at the beginning that both lines share. */
  readonly shaded?: number | undefined;
  readonly onChoose?: (column: number) => void;
  readonly onHover?: (column: number | undefined) => void;
  /** The text shown for a column under the pointer. */
  readonly tip?: (column: number) => readonly string[];
}

const colorOf = (name: string): string => getComputedStyle(document.documentElement).getPropertyValue(name);

/**
 * Returns a function that resolves a colour for a canvas. A canvas does not support `light-dark()`.
 */
function resolver(): (name: string) => string {
  const known = new Map<string, string>();
  return (name) => {
    let found = known.get(name);
    if (found === undefined) {
      const probe = document.createElement('i');
      document.body.append(probe);
      probe.style.color = colorOf(name);
      found = getComputedStyle(probe).color;
      probe.remove();
      known.set(name, found);
    }
    return found;
  };
}

/** Returns a number that grows when the colours change. */
function useColors(): number {
  const [times, setTimes] = useState(0);
  useEffect(() => {
    const change = (): void => setTimes((n) => n + 1);
    const media = matchMedia('(prefers-color-scheme: dark)');
    media.addEventListener('change', change);
    const observer = new MutationObserver(change);
    observer.observe(document.documentElement, { attributes: true, attributeFilter: ['data-theme'] });
    return () => {
      media.removeEventListener('change', change);
      observer.disconnect();
    };
  }, []);
  return times;
}

type Plot = typeof uPlot;

/**
 * Draws each value over its whole column. The library's own steps leave the column empty if no
 * value follows.
 */
const stepsOver: uPlot.Series.PathBuilder = (u, at, ...[from, to]) => {
  const [xs, ys, scale = 'y'] = [u.data[0], u.data[at] ?? [], u.series[at]?.scale];
  const stroke = new Path2D();
  let isOpen = false;
  for (let i = from; i <= to; i += 1) {
    const value = ys[i];
    if (value === null || value === undefined) {
      isOpen = false;
      continue;
    }
    const left = u.valToPos(xs[i] ?? 0, 'x', true);
    const right = u.valToPos(xs[i + 1] ?? xs[i] ?? 0, 'x', true);
    const level = u.valToPos(value, scale, true);
    if (isOpen) stroke.lineTo(left, level);
    else stroke.moveTo(left, level);
    stroke.lineTo(right, level);
    isOpen = true;
  }
  return { stroke };
};

function pathsOf(plot: Plot, draws: ChartSeries['draws']): uPlot.Series.PathBuilder | undefined {
  if (draws === 'bars') return plot.paths.bars?.({ size: [0.9, 60], align: 1 });
  if (draws === 'line') return plot.paths.linear?.();
  if (draws === 'steps') return stepsOver;
  // An area fills its column even if the next column has no value.
  return plot.paths.stepped?.({ align: 1, alignGaps: 1 });
}

/** Draws a background for the columns that both lines share. */
function shade(u: uPlot, to: number | undefined, color: string): void {
  if (to === undefined) return;
  const { ctx, bbox } = u;
  ctx.fillStyle = color;
  ctx.fillRect(bbox.left, bbox.top, u.valToPos(to, 'x', true) - bbox.left, bbox.height);
}

/** Frames the chosen column. */
function frame(u: uPlot, column: number | undefined, color: string): void {
  if (column === undefined) return;
  const { ctx, bbox } = u;
  const [from, to] = [u.valToPos(column, 'x', true), u.valToPos(column + 1, 'x', true)];
  ctx.strokeStyle = color;
  ctx.lineWidth = 2;
  ctx.strokeRect(from, bbox.top + 1, Math.max(2, to - from), bbox.height - 2);
}

const STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000];

/** Returns the centres of the columns whose numbers are shown. */
function numbered(count: number, width: number): number[] {
  const each = STEPS.find((step) => (count / step) * 44 <= width) ?? count;
  return Array.from({ length: count }, (_, i) => i + 1)
    .filter((number) => number % each === 0 || number === 1)
    .map((number) => number - 0.5);
}

function optionsOf(plot: Plot, props: ChartProps, width: number): uPlot.Options {
  const color = resolver();
  const { series, height, left, right, padRight = 12 } = props;
  const count = series[0]?.values.length ?? 0;
  const axis = { stroke: color('--soft'), font: `11px ${colorOf('--font')}`, labelFont: `11px ${colorOf('--font')}` };
  const grid = { stroke: color('--edge'), width: 1 };
  return {
    width,
    height,
    padding: [10, right === undefined ? padRight : 0, 0, 0],
    legend: { show: false },
    cursor: { y: false, points: { show: false }, drag: { x: false, y: false } },
    scales: {
      // Column N reaches from x = N to x = N + 1, counted from 0.
      x: { time: false, range: [0, Math.max(1, count)] },
      y: { range: (_u, _min, max) => [0, Math.max(1e-9, max * 1.05)] },
      right: { range: (_u, _min, max) => [0, Math.max(1e-9, max * 1.05)] },
    },
    axes: [
      {
        ...axis,
        size: 26,
        grid: { show: false },
        ticks: { show: false },
        splits: (u) => numbered(count, u.width - left.size - (right?.size ?? padRight)),
        values: (_u, ticks) => ticks.map((n) => String(n + 0.5)),
      },
      {
        ...axis,
        size: left.size,
        grid,
        ticks: { show: false },
        values: (_u, ticks) => ticks.map(props.leftFormat ?? shortCount),
      },
      ...(right === undefined
        ? []
        : [
            {
              ...axis,
              side: 1 as const,
              scale: 'right',
              size: right.size,
              grid: { show: false },
              ticks: { show: false },
              values: (_u: uPlot, ticks: number[]) => ticks.map(right.format ?? shortCount),
            },
          ]),
    ],
    series: [
      {},
      ...series.map(({ name, color: own, draws, isRight, isDashed, width: thick = 1.5 }): uPlot.Series => {
        const paths = pathsOf(plot, draws);
        const isFilled = draws === 'area' || draws === 'bars';
        return {
          label: name,
          scale: isRight === true ? 'right' : 'y',
          stroke: color(own),
          width: isFilled ? 0 : thick,
          points: { show: false },
          ...(paths === undefined ? {} : { paths }),
          ...(isFilled ? { fill: color(own) } : {}),
          ...(isDashed === true ? { dash: [6, 4] } : {}),
        };
      }),
    ],
    hooks: {
      drawClear: [(u) => shade(u, props.shaded, color('--sunk'))],
      draw: [(u) => frame(u, props.chosen, color('--ink'))],
      setCursor: [
        (u) => {
          const at = u.cursor.left ?? -1;
          const column = at < 0 ? undefined : Math.min(count - 1, Math.floor(u.posToVal(at, 'x')));
          props.onHover?.(column);
        },
      ],
    },
  };
}

/** Shows values call by call, with axes. The first chart loads the library. */
export function Chart(props: ChartProps) {
  const { label, series, height, chosen, shaded, onChoose, tip } = props;
  const box = useRef<HTMLDivElement>(null);
  const last = useRef(props);
  last.current = props;
  const colors = useColors();
  const [hovered, setHovered] = useState<number>();
  const [x, setX] = useState(0);
  useEffect(() => {
    const element = box.current;
    if (element === null) return undefined;
    let made: uPlot | undefined;
    let isWanted = true;
    const observer = new ResizeObserver(() => made?.setSize({ width: element.clientWidth, height }));
    void import('uplot').then(({ default: plot }) => {
      if (!isWanted) return;
      const count = series[0]?.values.length ?? 0;
      // The last value is repeated, because the end of the last column needs a value.
      const columns = series.map(({ values, draws }) =>
        draws === 'bars' ? [...values, null] : [...values, values.at(-1) ?? null],
      );
      const numbers = Array.from({ length: count + 1 }, (_, i) => i);
      const options = optionsOf(
        plot,
        {
          ...last.current,
          // Newer series may arrive while the library loads. The options must match these columns.
          series,
          height,
          chosen,
          shaded,
          onHover: (column) => {
            setHovered(column);
            last.current.onHover?.(column);
          },
        },
        element.clientWidth,
      );
      made = new plot(options, [numbers, ...columns] as uPlot.AlignedData, element);
      observer.observe(element);
    });
    return () => {
      isWanted = false;
      observer.disconnect();
      made?.destroy();
    };
  }, [series, height, chosen, shaded, colors]);
  const lines = hovered === undefined ? [] : (tip?.(hovered) ?? []);
  return (
    <div class="chart">
      <div
        ref={box}
        role="img"
        aria-label={label}
        style={{ minHeight: `${height}px` }}
        onPointerMove={({ clientX, currentTarget }) => setX(clientX - currentTarget.getBoundingClientRect().left)}
        onClick={() => hovered !== undefined && onChoose?.(hovered)}
      />
      {lines.length > 0 && (
        <div class={x > (box.current?.clientWidth ?? 0) - 240 ? 'tip flip' : 'tip'} style={{ left: `${x + 14}px` }}>
          {lines.map((line) => (
            <div key={line}>{line}</div>
          ))}
        </div>
      )}
    </div>
  );
}
