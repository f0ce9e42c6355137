import { Argument, Command, Option } from 'commander';
import { defined } from '../values/defined.js';
import type { ReviewFlags } from './review/answer.js';
import { withMoment } from './review/commands.js';
import type { ReviewedSession } from './review/session-answer.js';

/** What is to be exported, and where to. */
export interface AskedExport extends ReviewedSession {
  readonly folder: string;
  /** Whose memory goes with it; nobody's where undefined. */
  readonly agent: string | undefined;
  /** Whether what was redacted may go with it. */
  readonly withRedacted: boolean;
}

/** What was written, for people and for programs. */
export interface Exported {
  readonly lines: readonly string[];
  readonly json: object;
}

/** A format; its work is loaded when it is asked for, while the database is opened. */
interface ExportFormat {
  readonly about: string;
  load(): Promise<(asked: AskedExport) => Promise<Exported>>;
}

/** Refuses a session of which something may not be shown: a bundle holds all of it, since ids and proofs cover every byte. */
async function requireUnredacted({ timeline: { present }, session }: AskedExport): Promise<void> {
  const [{ REDACTION }, { BundleError }] = await Promise.all([
    import('../interop/agent-context/redaction.js'),
    import('../bundle/bundle-error.js'),
  ]);
  const lineage = await present.lineage(session);
  const events = lineage === undefined ? [] : await present.records(lineage, { kinds: ['event'] });
  const count = new Set(events.filter(({ body }) => body.type === REDACTION).map(({ body }) => body.subject)).size;
  if (count === 0) return;
  throw new BundleError(
    'redacted',
    `session ${session} has redaction rules (${count}), and a bundle would hold what they hide: say --with-redacted, or take --format agent-context, which applies them`,
  );
}

/** Every format that a session can be exported to. */
const FORMATS: Readonly<Record<string, ExportFormat>> = {
  bundle: {
    about: 'one file with everything of it, which palimpsest import takes into any database (docs/bundle.md)',
    load: async () => {
      const [{ exportBundle }, { stepAt }] = await Promise.all([
        import('../bundle/export-bundle.js'),
        import('../client/session/fork-at.js'),
      ]);
      return async (asked) => {
        const { timeline, session, when, folder, withRedacted } = asked;
        if (!withRedacted) await requireUnredacted(asked);
        const isPlaced = Object.values(when).some((clock) => clock !== undefined);
        const upto = isPlaced ? await stepAt(timeline, session, { when, holder: async () => undefined }) : undefined;
        const { file, turn, step, manifest } = await exportBundle(timeline, { session, file: folder, upto });
        const { documents, texts, transactions } = manifest;
        return {
          lines: [
            `session ${session}, turn ${turn}, step ${step}: ${documents} versions and parts of ${transactions} transactions, ${texts} texts in ${file}`,
          ],
          json: { format: 'bundle', session, turn, step, file, manifest },
        };
      };
    },
  },
  'agent-context': {
    about: 'a bundle of Agent Context, one file for each kind of object (docs/agent-context.md)',
    load: async () => {
      const { exportBundle } = await import('../interop/agent-context/export-bundle.js');
      return ({ folder, ...asked }) => exportBundle(asked, folder);
    },
  },
  cortexfs: {
    about: 'the session directory of CortexFS; one that is there is brought up to date (docs/cortexfs.md)',
    load: async () => {
      const { exportSession } = await import('../interop/cortexfs/export-session.js');
      return async ({ timeline, session, when, folder }) => {
        const { projection, appended, written, unchanged, removed } = await exportSession(timeline, folder, { session, when });
        const { entries, digest, turn, seq } = projection;
        return {
          lines: [
            `session ${session}, turn ${turn}, step ${seq}: ${entries.length} entries in ${folder}`,
            `${appended} lines added to messages.jsonl; ${written.length} files written, ${unchanged} unchanged`,
            ...removed.map((path) => `removed ${path}: it is not pinned any more`),
          ],
          json: {
            format: 'cortexfs',
            session,
            folder,
            turn,
            step: seq,
            entries: entries.length,
            digest,
            appended,
            written,
            unchanged,
            removed,
          },
        };
      };
    },
  },
};

interface ExportFlags extends ReviewFlags {
  readonly format: string;
  readonly agent?: string;
  readonly withRedacted?: boolean;
}

async function exportAction(reference: string, folder: string, flags: ExportFlags): Promise<void> {
  const format = FORMATS[flags.format];
  if (format === undefined) throw new Error(`there is no format ${JSON.stringify(flags.format)}`);
  const loading = format.load();
  loading.catch(() => undefined);
  const { answerSession } = await import('./review/session-answer.js');
  await answerSession(reference, { ...flags, ...defined({ at: flags.at ?? flags.asOf }) }, async (asked) => {
    const run = await loading;
    const { lines, json } = await run({ ...asked, folder, agent: flags.agent, withRedacted: flags.withRedacted ?? false });
    return { lines: () => lines, json: () => json };
  });
}

/** `palimpsest export`: writes a session for another database, or as another program keeps it. Changes nothing in the database. */
export function exportCommand(): Command {
  const abouts = Object.entries(FORMATS).map(([name, { about }]) => `  ${name.padEnd(14)} ${about}`);
  return withMoment(new Command('export'))
    .description('write a session as one file for other databases, or as another program keeps it')
    .argument('<session>', 'its id or the beginning of it, perhaps with @MOMENT, such as @turn:7')
    .addArgument(new Argument('<path>', 'the folder that is written; of a bundle the file'))
    .addOption(new Option('--format <format>', 'what is written').choices(Object.keys(FORMATS)).default('bundle'))
    .addOption(new Option('--as-of <moment>', 'the same as --at'))
    .addOption(new Option('--agent <name>', 'agent-context: with the memory of this agent'))
    .addOption(new Option('--with-redacted', 'bundle: also of a session with redaction rules, whose texts stand in it unmasked'))
    .addHelpText('after', `\nFormats:\n${abouts.join('\n')}`)
    .action(exportAction);
}
