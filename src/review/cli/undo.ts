import { Argument, Command, Option } from 'commander';
import { dataFlag, jsonFlag, wholeBetween } from '../../cli/flags.js';
import type { ReviewFlags } from '../../cli/review/answer.js';
import type { SetVerbs } from '../../session/plan-step.js';
import type { NameOf } from './object-names.js';

interface UndoFlags extends ReviewFlags {
  readonly plan?: boolean;
}

/** An undo, planned or done. */
interface Undone {
  readonly session: string;
  readonly undoes: number;
  /** The recorded step; undefined for a plan. */
  readonly step: number | undefined;
  readonly verbs: SetVerbs;
  readonly nameOf: NameOf;
}

const MOST_STEPS = 2_147_483_647;
const VERBS = ['activate', 'deactivate', 'pin', 'unpin'] as const;

async function report({ session, undoes, step, verbs, nameOf }: Undone, flags: UndoFlags): Promise<void> {
  const [{ escapedLine, standardOutput, writeJson, writeOutput }, { defined }] = await Promise.all([
    import('../../cli/output.js'),
    import('../../values/defined.js'),
  ]);
  const changes = defined(Object.fromEntries(VERBS.map((verb) => [verb, verbs[verb]])));
  if (flags.json === true) return writeJson({ session, undoes, step: step ?? null, changes });
  const head =
    step === undefined
      ? `session ${session}: undoing step ${undoes} would`
      : `session ${session}: step ${step} undoes step ${undoes}`;
  const lines = VERBS.flatMap((verb) => (verbs[verb] ?? []).map((id) => `  ${verb.padEnd(10)}  ${nameOf(id)}`));
  await writeOutput([head, ...lines].map(escapedLine), standardOutput(flags));
}

async function plan(reference: string, step: number, flags: UndoFlags): Promise<void> {
  const [{ openReview }, { namesFor }, { requireSession }, { requireOwn }, { previewUndo }] = await Promise.all([
    import('../../cli/review/answer.js'),
    import('./object-names.js'),
    import('../../history/rebuild/find-session.js'),
    import('../../history/rebuild/foreign-session.js'),
    import('../../client/session/person-steps.js'),
  ]);
  const { timeline, close } = await openReview(flags);
  try {
    const session = await requireSession(timeline.present, reference);
    await requireOwn(timeline, session);
    const { undoes, verbs } = await previewUndo(timeline.store, session, step);
    const nameOf = await namesFor(timeline, Object.values(verbs).flat());
    await report({ session, undoes, verbs, step: undefined, nameOf }, flags);
  } finally {
    await close();
  }
}

async function undo(reference: string, step: number, flags: UndoFlags): Promise<void> {
  const [
    { namesFor },
    { requireSession },
    { requireOwn },
    { undoStep },
    { openClient },
    { readSettings },
    { settingsOfPast },
    { Timeline },
  ] = await Promise.all([
    import('./object-names.js'),
    import('../../history/rebuild/find-session.js'),
    import('../../history/rebuild/foreign-session.js'),
    import('../../client/session/person-steps.js'),
    import('../../host/open-client.js'),
    import('../../host/settings.js'),
    import('../../host/past-settings.js'),
    import('../../history/rebuild/timeline.js'),
  ]);
  const settings = await settingsOfPast(readSettings(process.env, flags));
  const cwd = process.cwd();
  const { client, close } = await openClient(
    { ...settings, shareSessions: true },
    { roots: [cwd], cwd, track: false, what: 'palimpsest undo' },
  );
  try {
    const timeline = await Timeline.open(await client.delivered());
    const session = await requireSession(timeline.present, reference);
    await requireOwn(timeline, session);
    const borrowed = await client.borrowSession({ id: session, asPerson: true });
    try {
      const { seq, changes } = await undoStep(borrowed.session, client.store, step);
      await borrowed.session.isDelivered(10_000);
      const nameOf = await namesFor(await Timeline.open(client.store), Object.values(changes).flat());
      await report({ session, undoes: step, step: seq, verbs: changes, nameOf }, flags);
    } finally {
      await borrowed.release();
    }
  } finally {
    await close();
  }
}

/**
 * `palimpsest undo`: reverts one step's changes to the active and pinned sets of a session, with a
 * new step.
 */
export function undoCommand(): Command {
  return new Command('undo')
    .description('revert what one step changed in the sets of a session, with a new step recorded as done by a person')
    .argument('<session>', 'session id or prefix')
    .addArgument(
      new Argument('<step>', 'step number, as palimpsest log shows it').argParser(wholeBetween(1, MOST_STEPS)),
    )
    .addOption(new Option('--plan', 'print the changes without making them'))
    .addOption(dataFlag())
    .addOption(jsonFlag())
    .action(async (session: string, step: number, flags: UndoFlags) => {
      const { reportFailure } = await import('../../cli/output.js');
      await reportFailure(flags, () => (flags.plan === true ? plan(session, step, flags) : undo(session, step, flags)));
    });
}
