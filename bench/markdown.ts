import type { Machine } from './machine.js';
import { type CaseResult, type CountedCase, medianOf, summary, type TimedCase } from './results.js';

const DECIMALS_FROM = [
  [100, 0],
  [10, 1],
  [1, 2],
] as const;

function figure(value: number): string {
  if (!Number.isFinite(value)) return 'not measured';
  const decimals = DECIMALS_FROM.find(([least]) => Math.abs(value) >= least)?.[1] ?? 3;
  return value.toLocaleString('en', { minimumFractionDigits: 0, maximumFractionDigits: decimals });
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;
  return [line(head), line(head.map((_, i) => (i === 0 ? '---' : '---:'))), ...rows.map(line)].join('\n');
}

function timed({ title, remark, samples, yardsticks }: TimedCase): string {
  const answers = samples.some(({ answerBytes }) => answerBytes !== undefined);
  const head = [
    '',
    'n',
    'p50 ms',
    'p95 ms',
    'least ms',
    ...(answers ? ['answer, bytes'] : []),
    ...yardsticks.map((name) => `× ${name}`),
  ];
  const rows = samples.map((sample) => {
    const { n, p50, p95, least } = summary(sample);
    const ratios = yardsticks.map((name) => (name === sample.name ? '1' : figure(p50 / medianOf(samples, name))));
    const answer = answers ? [sample.answerBytes === undefined ? '' : figure(sample.answerBytes)] : [];
    return [sample.name, String(n), figure(p50), figure(p95), figure(least), ...answer, ...ratios];
  });
  return [`### ${title}`, ...(remark === undefined ? [] : [remark]), table(head, rows)].join('\n\n');
}

function counted({ title, remark, rows }: CountedCase): string {
  const body = rows.map(({ name, value, unit }) => [name, `${figure(value)} ${unit}`.trimEnd()]);
  return [`### ${title}`, ...(remark === undefined ? [] : [remark]), table(['', 'measured'], body)].join('\n\n');
}

/** Formats the figures of a run as Markdown: the machine, the goals, and every case. */
export function toMarkdown(machine: Machine, { cases, goals }: CaseResult, seconds: number): string {
  const about = [
    ['date', machine.date],
    ['commit', machine.commit],
    ['command', `\`${machine.command}\``],
    ['machine', `${machine.system}, ${machine.processor}, ${machine.memoryGiB} GiB`],
    ['Node', machine.node],
    ['Java', machine.java],
    ['load when it began', figure(machine.load)],
    ['took', `${figure(seconds)} s`],
  ];
  const aims = goals.map(({ what, measured, bar, unit }) => {
    const verdict = Number.isFinite(measured) ? (measured <= bar ? 'yes' : 'no') : '';
    return [what, `${figure(measured)} ${unit}`, `${figure(bar)} ${unit}`, verdict];
  });
  return [
    table(['', 'this run'], about),
    '### Goals',
    table(['', 'measured', 'at most', 'met'], aims),
    ...cases.map((result) => (result.kind === 'timed' ? timed(result) : counted(result))),
  ].join('\n\n');
}
