import { bandRows, fillOf } from './strip-layout.js';
import type { SessionRow, Strip } from './wire.js';

/** One line of a comparison by call. */
export interface ComparedLine {
  readonly name: string;
  /** The request size of each call. */
  readonly sizes: readonly number[];
  /** Number of calls with exact sizes; later sizes are bounds. */
  readonly exact: number;
}

/** A comparison on one axis of calls. */
export interface Comparison {
  readonly unit: string;
  readonly lines: readonly ComparedLine[];
  /** The last call that a session and its fork share; undefined if they share none. */
  readonly shared?: number | undefined;
  /** Remarks on the limits of the comparison. */
  readonly marks: readonly string[];
}

/**
 * Converts a session to a line. It is exact where contexts were recorded; otherwise it is a bound,
 * because only the active texts at each turn's end are known.
 */
function sessionLine({ session, calls, bands }: Strip): ComparedLine {
  const { parts } = fillOf(calls, bandRows(bands, calls));
  const isRecorded = calls.some(({ chars }) => chars !== null);
  return {
    name: session,
    sizes: parts.map((own) => own.reduce((sum, { size }) => sum + size, 0)),
    exact: isRecorded ? calls.length : 0,
  };
}

/** Compares two sessions. If one is a fork of the other, includes the number of shared calls. */
export function sessionComparison(a: Strip, b: Strip, rows: readonly SessionRow[]): Comparison {
  const parentOf = (id: string) => rows.find((row) => row.id === id)?.parent;
  const left = [
    [a, parentOf(b.session), b],
    [b, parentOf(a.session), a],
  ] as const;
  const found = left.find(([parent, fork]) => fork?.session === parent.session);
  const at = found?.[1]?.at;
  const shared =
    found === undefined || at === undefined ? undefined : found[2].calls.filter(({ step }) => step <= at).length;
  const lines = [sessionLine(a), sessionLine(b)];
  const bounded = lines
    .filter(({ exact }) => exact === 0)
    .map(({ name }) => `${name} delivered no context: its line has the active texts at the end of each turn`);
  return { unit: 'characters', lines, marks: bounded, ...(shared === undefined || shared === 0 ? {} : { shared }) };
}

type Json = { readonly [key: string]: unknown };

const isObject = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const texts = (value: unknown): readonly string[] =>
  Array.isArray(value) ? value.filter((one): one is string => typeof one === 'string') : [];

/** A laboratory run from laboratory.json: its sessions by name. */
export interface LabRun {
  readonly sessions: ReadonlyMap<string, Comparison>;
}

function policyLine(name: string, policy: unknown): readonly ComparedLine[] {
  const score = isObject(policy) ? policy.score : undefined;
  const series = isObject(score) ? score.series : undefined;
  if (!isObject(score) || !isObject(series) || !Array.isArray(series.tokens)) return [];
  const sizes = series.tokens.filter((one): one is number => typeof one === 'number');
  return [{ name, sizes, exact: typeof score.exact === 'number' ? score.exact : 0 }];
}

/** Parses the report of a laboratory run. Throws RangeError for any other text. */
export function readLabRun(text: string): LabRun {
  let report: unknown;
  try {
    report = JSON.parse(text);
  } catch {
    throw new RangeError('the file is not JSON: choose the laboratory.json that palimpsest lab --out wrote');
  }
  if (!isObject(report) || report.report !== 'laboratory' || report.version !== 1 || !Array.isArray(report.sessions))
    throw new RangeError(
      'the file is not a laboratory report of version 1: choose the laboratory.json that palimpsest lab --out wrote',
    );
  const sessions = report.sessions.flatMap((session): readonly (readonly [string, Comparison])[] => {
    if (!isObject(session) || !isObject(session.policies)) return [];
    const lines = Object.entries(session.policies).flatMap(([name, policy]) => policyLine(name, policy));
    return lines.length === 0 ? [] : [[String(session.name), { unit: 'tokens', lines, marks: texts(session.marks) }]];
  });
  return { sessions: new Map(sessions) };
}

/**
 * Converts a line to SVG points in two parts: exact, then bounded. The second begins where the
 * first ends.
 */
export function linePoints(
  { sizes, exact }: ComparedLine,
  {
    width,
    height,
    calls,
    most,
  }: { readonly width: number; readonly height: number; readonly calls: number; readonly most: number },
): { readonly exact: string; readonly bounded: string } {
  const point = (size: number, i: number): string => {
    const x = (i + 0.5) * (width / Math.max(1, calls));
    const y = height - (size / Math.max(1, most)) * height;
    return `${x.toFixed(1)},${y.toFixed(1)}`;
  };
  const points = sizes.map(point);
  return {
    exact: points.slice(0, exact).join(' '),
    bounded: exact >= points.length ? '' : points.slice(Math.max(0, exact - 1)).join(' '),
  };
}
