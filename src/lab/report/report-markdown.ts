import { STANDINGS } from '../replay/use-evidence.js';
import { type Cell, grouped, table } from './markdown.js';
import type { Quantiles, ReplayReport } from './replay-report.js';

const sizeCells = (size: Quantiles | undefined): readonly Cell[] =>
  size === undefined ? ['', '', ''] : [size.p50, size.p95, size.max];

function contextTable({ contexts }: ReplayReport): readonly string[] {
  const unit = contexts.tokenizer === undefined ? 'bytes' : 'tokens';
  const rows = Object.entries({ ...contexts.sections, whole: contexts.total }).map(([name, size]) => [
    name,
    ...sizeCells(size.bytes),
    ...(unit === 'tokens' ? sizeCells(size.tokens) : []),
  ]);
  const head = ['section', 'bytes p50', 'p95', 'max', ...(unit === 'tokens' ? ['tokens p50', 'p95', 'max'] : [])];
  return table(head, rows);
}

function lossLines({ losses }: ReplayReport): readonly string[] {
  if (losses.total === 0) return ['Nothing was lost.'];
  const reasons = Object.entries(losses.by_reason).map(([reason, count]) => [reason, count ?? 0]);
  const first = losses.each.slice(0, 10).map(({ reason, place, detail }) => `- ${reason}, ${place}: ${detail}`);
  return [...table(['loss', 'times'], reasons), '', ...first];
}

function notes({ clock, complete, objects, tree, recorded }: ReplayReport): readonly string[] {
  const said: readonly (string | undefined)[] = [
    complete ? undefined : '**The recording is cut off: what came after is not in this report.**',
    clock.backwards > 0
      ? `The clock ran backwards ${grouped(clock.backwards)} times; each such moment counts as the previous one.`
      : undefined,
    clock.impossible > 0
      ? `${grouped(clock.impossible)} moments are impossible or in the future; each counts as the previous one.`
      : undefined,
    recorded.unanswered > 0
      ? `${grouped(recorded.unanswered)} calls never had a result; they are recorded as failed, with empty output.`
      : undefined,
    objects.not_discovered > 0
      ? `${grouped(objects.not_discovered)} files were beyond the cap of a call (decision C7).`
      : undefined,
    tree.stale > 0
      ? `Of ${grouped(tree.stale)} files the text is not known at the end: their last known version stays.`
      : undefined,
  ];
  return said.filter((line) => line !== undefined);
}

/** Returns a short report of a replay for people. The JSON has the remaining data. */
export function reportMarkdown(report: ReplayReport): string {
  const { recording, recorded, objects, uses, contexts } = report;
  const { files, toolcalls } = objects;
  const use = (name: 'edited' | 'quoted'): readonly Cell[] => [
    name,
    ...STANDINGS.map((standing) => uses[name][standing]),
  ];
  const messages = Object.values(recorded.messages).reduce((sum, count) => sum + count, 0);
  const lines = [
    `# Replay of ${recording.name}`,
    '',
    `${recording.formats.join(', ')}, ${grouped(recording.bytes)} bytes, sha256 \`${recording.sha256}\``,
    `Parameters: \`${JSON.stringify(report.config)}\``,
    `Digest: \`${report.digest}\``,
    '',
    `${grouped(report.sessions.length)} sessions, ${grouped(report.turns)} turns, ${grouped(report.steps)} steps; ` +
      `recorded: ${grouped(messages)} messages, ` +
      `${grouped(recorded.calls)} calls (${grouped(recorded.failed)} failed), ` +
      `${grouped(recorded.reads.whole)} whole reads, ${grouped(recorded.reads.part)} reads of parts ` +
      `(${grouped(recorded.reads.by_shell)} of both by a shell), ${grouped(recorded.compactions)} compactions.`,
    '',
    '## Objects',
    '',
    ...table(
      ['type', 'created', 'updated', 'unchanged', 'stubs', 'deleted'],
      [
        ['file', files.created, files.updated, files.unchanged, files.stubs, files.deleted],
        ['toolcall', toolcalls.created, 0, 0, 0, 0],
      ],
    ),
    '',
    `File changes: ${grouped(recorded.changes.followed)} followed to the text afterwards, ` +
      `${grouped(recorded.changes.unknown)} to an unknown one.`,
    '',
    `## Contexts: ${grouped(contexts.count)}`,
    '',
    ...contextTable(report),
    '',
    '## What the agent used',
    '',
    ...table(['files', 'active', 'shown by a result', 'one step away', 'absent'], [use('edited'), use('quoted')]),
    '',
    '## Losses and repairs',
    '',
    ...lossLines(report),
    ...notes(report).flatMap((line) => ['', line]),
  ];
  return `${lines.join('\n')}\n`;
}
