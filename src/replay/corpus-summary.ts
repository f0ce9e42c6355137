import type { ListedCounts } from './corpus.js';
import type { ReplayReport } from './replay-report.js';
import { corpusHash } from './run-experiment.js';

/** One recording of a corpus and what became of it. */
export interface CorpusResult {
  readonly name: string;
  readonly listed: ListedCounts | undefined;
  readonly report: ReplayReport | undefined;
  /** Why there is no report. */
  readonly failure: string | undefined;
  readonly ms: number;
}

/** How the corpus was replayed. */
export interface CorpusRun {
  readonly command: string;
  readonly commit: string;
  readonly date: string;
}

/** Where the listed counts come from something else than what is counted here; the first reason that accounts for a difference is told. */
function reasonFor(
  field: 'items' | 'calls' | 'reads',
  difference: number,
  { report, listed }: Required<Pick<CorpusResult, 'report' | 'listed'>>,
): string {
  if (report === undefined || listed === undefined) return 'unexplained';
  const { recorded, sessions, recording } = report;
  const own = { items: recorded.items, calls: recorded.calls, reads: recorded.read_files };
  const listedCount = own[field] - difference;
  if (listed.bytes > 0 && recording.bytes < listed.bytes * 0.9)
    return `the file here has ${recording.bytes} of the ${listed.bytes} bytes that were counted`;
  if (sessions.length > 1 && recorded.main[field] === listedCount)
    return `the listed count leaves out ${sessions.length - 1} sub-agents, sessions of their own here`;
  if (field === 'items') {
    if (-difference === sessions.length && report.contexts.sections.system !== undefined && report.contexts.sections.system.chars.max > 0)
      return 'the system prompt is listed as a message, here it is the prompt of the session';
    if (difference === recorded.results) return 'the listed count leaves out results, which are part of their calls in this format';
    const events = Object.values(recorded.events).reduce((sum, count) => sum + count, 0);
    if (events > 0 && -difference <= events)
      return `records that say nothing to the model are listed as messages, here they are ${events} events`;
    if (recorded.attachments > 0 && -difference <= recorded.attachments)
      return `attachments are listed as messages; ${recorded.attachments} here`;
    if (difference > 0 && events > 0)
      return 'the listed count leaves out results that are part of their calls, and counts notes of the program, events here';
    return 'the listed count takes records as messages that are here parts of an answer, or the other way round';
  }
  if (field === 'reads') return 'reads in shell text and of several files in one call are told apart by other rules';
  return 'calls in records that could not be taken over stand among the losses';
}

/** Every difference from the listed counts, with its reason. */
function explanations({ listed, report }: CorpusResult): readonly string[] {
  if (listed === undefined || report === undefined) return [];
  const { recorded } = report;
  const pairs = [
    ['items', recorded.items, listed.messages],
    ['calls', recorded.calls, listed.calls],
    ['reads', recorded.read_files, listed.reads],
  ] as const;
  return pairs.flatMap(([field, own, other]) =>
    own === other ? [] : [`${field} ${own}, listed ${other}: ${reasonFor(field, own - other, { report, listed })}`],
  );
}

function line(result: CorpusResult): string {
  const { name, listed, report, failure, ms } = result;
  if (report === undefined) return `| ${name} | | | | | | | | | | ${failure ?? 'not replayed'} |`;
  const { recorded, contexts, uses } = report;
  const against = (own: number, other: number | undefined): string =>
    other === undefined || other === own ? String(own) : `${own} (${other})`;
  const tokens = contexts.total.tokens;
  return `| ${[
    name,
    against(recorded.items, listed?.messages),
    against(recorded.calls, listed?.calls),
    against(recorded.read_files, listed?.reads),
    contexts.count,
    tokens?.p50 ?? '',
    tokens?.max ?? '',
    `${uses.edited.active}/${uses.edited.shown}/${uses.edited['one-step']}/${uses.edited.absent}`,
    `${recorded.changes.followed}/${recorded.changes.unknown}`,
    (ms / 1_000).toFixed(1),
    report.losses.total,
  ].join(' | ')} |`;
}

/** The summary over a replayed corpus for people. */
export function corpusMarkdown(
  run: CorpusRun,
  results: readonly CorpusResult[],
  others: readonly { readonly name: string; readonly reason: string }[],
): string {
  const reports = results.flatMap(({ report }) => (report === undefined ? [] : [report]));
  const differing = results.flatMap((result) => {
    const said = explanations(result);
    return said.length === 0 ? [] : [`- ${result.name}: ${said.join('; ')}.`];
  });
  const sum = (of: (report: ReplayReport) => number): number => reports.reduce((all, report) => all + of(report), 0);
  return [
    `# Replay of a corpus, ${run.date}`,
    '',
    `Command: \`${run.command}\`  `,
    `Commit: \`${run.commit}\`  `,
    `Corpus: ${reports.length} recordings, ${sum(({ sessions }) => sessions.length)} sessions, sha256 \`${corpusHash(reports)}\` (over the sorted hashes of their contents)`,
    '',
    `${sum(({ steps }) => steps)} steps, ${sum(({ contexts }) => contexts.count)} contexts, ${sum(({ objects }) => objects.files.created)} files, ${sum(({ objects }) => objects.toolcalls.created)} tool calls, ${sum(({ losses }) => losses.total)} losses.`,
    '',
    'Counts beside those of the list that comes with the corpus, in brackets where they differ. Edited: files that the agent edited while active / shown by a',
    'result / one step away / absent. Changes: followed / to an unknown text.',
    '',
    '| recording | items | calls | reads | contexts | tokens p50 | max | edited | changes | seconds | losses |',
    '|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|',
    ...results.map(line),
    '',
    '## Differences',
    '',
    ...(differing.length === 0 ? ['None.'] : differing),
    '',
    '## Not recordings',
    '',
    ...(others.length === 0 ? ['None.'] : others.map(({ name, reason }) => `- ${name}: ${reason}`)),
    '',
  ].join('\n');
}

/** The summary as data: everything of each report but the single contexts and uses. */
export function corpusJson(run: CorpusRun, results: readonly CorpusResult[]): unknown {
  return {
    ...run,
    recordings: results.map(({ name, listed, report, failure, ms }) => {
      if (report === undefined) return { name, failure, ms };
      const { each: _contexts, ...contexts } = report.contexts;
      const { each: _uses, ...uses } = report.uses;
      return { name, listed, ms, report: { ...report, contexts, uses } };
    }),
  };
}
