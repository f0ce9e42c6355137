import { STANDINGS } from '../replay/use-evidence.js';
import { type Cell, table } from '../report/markdown.js';
import type { Experiment, ExperimentResult } from './experiment.js';

/** Facts about an experiment and its run. */
export interface ExperimentAbout {
  readonly experiment: Experiment;
  readonly command: string;
  readonly commit: string;
  readonly date: string;
  /** The hash of the replayed recordings. */
  readonly corpus: string;
  readonly failures: readonly string[];
}

const sum = (results: readonly ExperimentResult[], of: (result: ExperimentResult) => number): number =>
  results.reduce((all, result) => all + of(result), 0);
const size = ({ tokens, bytes }: ExperimentResult): number => (tokens ?? bytes).sum;
const SECTIONS = ['system', 'pool', 'chat', 'active'];

/** Formats a size's difference from the size under the first parameters, such as `+8.8 %`. */
function against(own: number, first: number): string {
  if (first === 0) return '';
  const percent = (100 * (own - first)) / first;
  return `${percent > 0 ? '+' : ''}${percent.toFixed(1)} %`;
}

const usesOf = (results: readonly ExperimentResult[], use: 'edited' | 'quoted'): string =>
  STANDINGS.map((standing) => sum(results, ({ uses }) => uses[use][standing])).join(' / ');

/**
 * Returns one row for each set of parameters. Only recordings that were replayed with all sets are
 * compared.
 */
function compared(experiment: Experiment, all: readonly ExperimentResult[]): readonly (readonly Cell[])[] {
  const names = experiment.parameters.map(({ name }) => name);
  const replayed = (recording: string): boolean =>
    names.every((name) => all.some((one) => one.recording === recording && one.parameters === name));
  const results = all.filter(({ recording }) => replayed(recording));
  const of = (name: string): readonly ExperimentResult[] => results.filter(({ parameters }) => parameters === name);
  const first = sum(of(names[0] ?? ''), size);
  return names.map((name) => {
    const own = of(name);
    const total = sum(own, size);
    const contexts = sum(own, (one) => one.contexts);
    return [
      name,
      contexts,
      contexts === 0 ? 0 : Math.round(total / contexts),
      against(total, first),
      ...SECTIONS.map((section) =>
        contexts === 0 ? 0 : Math.round(sum(own, ({ sections }) => sections[section] ?? 0) / contexts),
      ),
      usesOf(own, 'edited'),
      usesOf(own, 'quoted'),
    ];
  });
}

/** Returns an experiment's figures as Markdown: in total, by format, and for each recording. */
export function experimentMarkdown(about: ExperimentAbout, results: readonly ExperimentResult[]): string {
  const { experiment, command, commit, date, corpus, failures } = about;
  const unit = results.some(({ tokens }) => tokens !== undefined) ? 'tokens' : 'bytes';
  const head = ['parameters', 'contexts', `${unit} per context`, 'change', ...SECTIONS, 'edited', 'quoted'];
  const formats = [...new Set(results.map(({ format }) => format))];
  const each = results.map((result): readonly Cell[] => {
    const { p50, p95, max, sum: all } = result.tokens ?? result.bytes;
    return [result.recording, result.parameters, result.contexts, p50, p95, max, all, usesOf([result], 'edited')];
  });
  const standings = 'active / shown by a result / one step away / absent';
  return [
    `# Experiment ${experiment.name}, ${date}: figures`,
    '',
    experiment.question,
    '',
    `Command: \`${command}\`  `,
    `Commit: \`${commit}\`  `,
    `Corpus: ${new Set(results.map(({ recording }) => recording)).size} recordings, sha256 \`${corpus}\` (over ` +
      'the sorted hashes of their contents)',
    '',
    ...experiment.parameters.map(({ name, config }) => `- ${name}: \`${JSON.stringify(config)}\``),
    '',
    `Means over all assembled contexts, in ${unit}, by section. Edited and quoted: files that the agent edited ` +
      `or quoted, by their state at that time: ${standings}.`,
    '',
    '## All recordings',
    '',
    ...table(head, compared(experiment, results)),
    ...(formats.length < 2
      ? []
      : formats.flatMap((format) => [
          '',
          `## ${format}`,
          '',
          ...table(
            head,
            compared(
              experiment,
              results.filter((one) => one.format === format),
            ),
          ),
        ])),
    '',
    '## Each recording',
    '',
    ...table(['recording', 'parameters', 'contexts', `${unit} p50`, 'p95', 'max', 'sum', 'edited'], each, 2),
    ...(failures.length === 0 ? [] : ['', '## Not replayed', '', ...failures.map((line) => `- ${line}`)]),
    '',
  ].join('\n');
}
