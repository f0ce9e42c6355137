import type { ObjectMask } from '../../bundle/masked-names.js';
import { callName, kindOfCall, linesAsked, type NamedCall, namedCall } from '../../history/rebuild/call-names.js';
import { bordersOf } from '../../history/rebuild/epoch-chain.js';
import { requireSession, sessionOf } from '../../history/rebuild/find-session.js';
import { HistoryError } from '../../history/rebuild/history-error.js';
import { callNumbers, modelCallsOf } from '../../history/rebuild/model-calls.js';
import { isSaid } from '../../history/rebuild/said-text.js';
import type { Timeline } from '../../history/rebuild/timeline.js';
import type { Shaped } from '../../http/wire-shape.js';
import { wireShape } from '../../http/wire-shape.js';
import type { Json } from '../../objects/canonical-json.js';
import type { ObjectId, SessionId } from '../../objects/ids.js';
import type { Message } from '../../objects/object-type.js';
import type { Step } from '../../objects/step.js';
import { MASK } from '../../redaction/mark.js';
import { type Described, describe } from '../../review/ask/described-objects.js';
import type { LoggedEpoch } from '../../review/ask/logged-turn.js';
import { changeOf, inheritedSteps, type SessionCall, sessionCalls } from '../../review/ask/session-calls.js';
import type { ActedVersion, PutBackFile } from '../../review/authors/acted-versions.js';
import { editSights } from '../../review/authors/edit-sights.js';
import { sessionActors } from '../../review/authors/session-actors.js';
import { pinnedBasis } from '../../review/http/review-answers.js';
import { costOf } from '../../review/money/call-cost.js';
import { uncountedAnswers } from '../../review/money/uncounted-output.js';
import { readStarter, type Starter } from '../../review/rows/import-records.js';
import { type RecordedParents, subAgentsOf } from '../../review/rows/sub-agents.js';
import { defined } from '../../values/defined.js';
import { editDiff } from './edit-diff.js';
import { PAGE_ANSWERS, type PageBody } from './page-schemas.js';

type Row = Shaped<PageBody<'Conversation'>['rows'][number]>;

/** Selects the part of a conversation to return. */
export interface ConversationQuestion {
  readonly session: string;
  readonly after?: number | undefined;
  readonly before?: number | undefined;
  readonly around?: number | undefined;
  /** The number of a tool call, from 1. */
  readonly call?: number | undefined;
  readonly limit: number;
  /** The imported sessions, whose sub-agents are linked. */
  readonly recorded?: RecordedParents | undefined;
}

const MOST_MESSAGE = 20_000;
/** Maximum number of files that a call's row names. */
const MOST_FILES = 50;
/** Maximum length of a prompt in the outline. */
const MOST_PROMPT = 80;
const HEAD_CHARS = 2_000;
const TAIL_CHARS = 1_000;

/** Returns the speaker of a message: `harness` for texts that no person wrote. */
export function speakerOf(message: Message) {
  const { role } = message;
  if (role === 'assistant') return 'assistant' as const;
  if (role === 'system' || role === 'developer') return 'system' as const;
  return isSaid(message) ? ('user' as const) : ('harness' as const);
}

/** Names who wrote a prompt: of a sub-agent, the agent that started it. */
const promptedBy = (speaker: ReturnType<typeof speakerOf>, isSubAgent: boolean) =>
  speaker === 'user' && isSubAgent ? ('parent' as const) : speaker;

/** Returns the beginning and the end of a long text. */
function abridged(text: string): { readonly text: string; readonly isCut: boolean } {
  if (text.length <= HEAD_CHARS + TAIL_CHARS) return { text, isCut: false };
  const left = text.length - HEAD_CHARS - TAIL_CHARS;
  const shown = `${text.slice(0, HEAD_CHARS)}\n… ${left} characters …\n${text.slice(-TAIL_CHARS)}`;
  return { text: shown.toWellFormed(), isCut: true };
}

const EVENTS: Readonly<Record<NonNullable<Step['event']>['kind'], string>> = {
  compacted: 'The harness compacted its history.',
  shortened: 'The harness sends less of its history.',
  diverged: "The harness's history continues differently.",
  forked: 'Everything before this line was made in another session.',
  paused: "Palimpsest was turned off: the next requests are the harness's own list.",
  resumed: 'Palimpsest was turned on.',
  bypassed: "A model call used the harness's own list.",
  lost: 'An acknowledged step was lost in a damaged journal.',
};

const FORKED_FROM = 'Everything before this line was made in the session';

/** A mask that hides nothing. */
const UNMASKED: ObjectMask = { masked: (text) => text, maskedValue: (value) => value, hides: () => false };

/** The facts that rows need beside the steps of a session. */
interface Facts {
  readonly mask: ObjectMask;
  readonly timeline: Timeline;
  /** Number of first steps that are its parent's. */
  readonly inherited: number;
  readonly isSubAgent: boolean;
  readonly calls: ReadonlyMap<ObjectId, SessionCall>;
  /** The numbers of tool calls and model calls by step. */
  readonly numbers: ReadonlyMap<number, number>;
  readonly answers: ReadonlyMap<number, number>;
  /** The steps of answers whose output no provider counted. */
  readonly uncounted: ReadonlySet<number>;
  readonly outputs: ReadonlyMap<string, { readonly output: string; readonly args: object; readonly display: string }>;
  readonly files: ReadonlyMap<ObjectId, Described>;
  /** The sessions of sub-agents by the calls that started them. */
  readonly subAgents: ReadonlyMap<ObjectId, string>;
  readonly stale: ReadonlySet<number>;
  /** The files that commands restored, by step. */
  readonly putBack: ReadonlyMap<number, readonly PutBackFile[]>;
  readonly sights: Awaited<ReturnType<typeof editSights>>;
  /** By step, the files that a call without a recorded result changed, as a later text shows. */
  readonly shownLater: ReadonlyMap<number, readonly ObjectId[]>;
  readonly versions: ReadonlyMap<ObjectId, readonly ActedVersion[]>;
}

/** Returns what the model said about a command that it ran. */
function wordsAbout(call: NamedCall): string | undefined {
  const { description } = call.args;
  return kindOfCall(call) === 'shell' && typeof description === 'string' ? description : undefined;
}

function callRow(step: Step, call: SessionCall, facts: Facts): Row {
  const { seq, turn, at, notes = [] } = step;
  const { output = '', args = {}, display = '' } = facts.outputs.get(call.id) ?? {};
  const named = namedCall({ tool: call.tool, args });
  const shown = abridged(output);
  const lines = call.changes ? undefined : linesAsked(named);
  const putBack = (facts.putBack.get(seq) ?? []).slice(0, MOST_FILES);
  return {
    kind: 'call',
    step: seq,
    turn,
    at: new Date(at),
    id: call.id,
    number: facts.numbers.get(seq) ?? 0,
    // The name is made from masked arguments, so it contains no secret.
    name: callName(named),
    tool: call.tool,
    ...defined({ about: wordsAbout(named) }),
    failed: call.failed,
    unanswered: call.unanswered,
    args: display,
    result: shown.text,
    resultChars: output.length,
    isCut: shown.isCut,
    files: [
      ...call.fileRefs.slice(0, MOST_FILES).flatMap((id) => {
        const file = facts.files.get(id);
        if (file === undefined || putBack.some(({ object }) => object === id)) return [];
        const version = facts.versions.get(id)?.find(({ by }) => by.step === seq);
        const sight = facts.sights.get(seq)?.files.get(id);
        const isMade = !call.failed || facts.shownLater.get(seq)?.includes(id) === true;
        const effect = call.changes
          ? changeOf(isMade)
          : call.fileRefs.length > 3
            ? ('listed' as const)
            : ('read' as const);
        return [{ id, name: file.name, effect, ...defined({ lines, version, sight }) }];
      }),
      ...putBack.map(({ object: id, version }) => ({
        id,
        name: facts.files.get(id)?.name ?? id,
        effect: 'put back' as const,
        version,
      })),
    ],
    diff: editDiff(named),
    notes,
    call: facts.answers.get(seq),
    subAgent: facts.subAgents.get(call.id),
    stale: facts.stale.has(seq),
  } as Row;
}

function rowsOf(step: Step, facts: Facts): readonly Row[] {
  const { seq, turn, opens, message, call, event, by, usage, undoes } = step;
  const where = { step: seq, turn, at: new Date(step.at) };
  const rows: Row[] = [];
  const inherited = seq <= facts.inherited;
  if (opens !== undefined) rows.push({ kind: 'turn', ...where, inherited, openedBy: opens.rule });
  if (event !== undefined) {
    const isCompaction = event.kind === 'compacted';
    const detail = isCompaction || event.detail === undefined ? '' : ` ${event.detail}`;
    const told = event.kind === 'forked' && detail !== '' ? FORKED_FROM : EVENTS[event.kind];
    const more = isCompaction ? defined({ summary: event.detail || undefined, dropped: event.missing }) : {};
    rows.push({ kind: 'event', ...where, event: event.kind, text: `${told}${detail}`, ...more });
  }
  if (message !== undefined) {
    // A part of a secret is not recognised, so a text is masked before it is cut.
    const whole = facts.mask.masked(message.text);
    const text = whole.slice(0, MOST_MESSAGE).toWellFormed();
    rows.push({
      kind: 'message',
      ...where,
      inherited,
      role: promptedBy(speakerOf(message), !inherited && facts.isSubAgent),
      text,
      isCut: text.length < whole.length,
      isUncounted: facts.uncounted.has(seq),
      ...defined({ call: facts.answers.get(seq), usage }),
      ...defined({ cost: usage === undefined ? undefined : costOf(usage, { at: step.at }) }),
    });
  }
  const made = call === undefined ? undefined : facts.calls.get(call.id);
  if (made !== undefined) rows.push(callRow(step, made, facts));
  if (by !== undefined) {
    const changed = Object.values(step.changes).reduce((sum, ids) => sum + ids.length, 0);
    const things = `${changed} ${changed === 1 ? 'object' : 'objects'}`;
    const text = undoes === undefined ? `A person changed the context: ${things}.` : `A person undid step ${undoes}.`;
    rows.push({ kind: 'person', ...where, text });
  }
  return rows;
}

const epochRow = ({ seq, at, number, reason, price }: LoggedEpoch, turn: number): Row => ({
  kind: 'epoch',
  step: seq,
  turn,
  at,
  number,
  reason,
  ...defined({ price }),
  text: `Epoch ${number} of contexts began (${reason}).`,
});

/** Returns the steps of the selected part of a conversation. */
function stepsOfPart(
  steps: readonly Step[],
  numbers: ReadonlyMap<number, number>,
  { after, before, around, call, limit }: ConversationQuestion,
): readonly Step[] {
  const wanted = call === undefined ? around : [...numbers].find(([, number]) => number === call)?.[0];
  if (call !== undefined && wanted === undefined)
    throw new HistoryError('beyond-end', `the session has no tool call ${call}: it has ${numbers.size}`);
  if (before !== undefined) return steps.filter(({ seq }) => seq < before).slice(-limit);
  if (wanted === undefined) return steps.filter(({ seq }) => seq > (after ?? 0)).slice(0, limit);
  const at = steps.findIndex(({ seq }) => seq >= wanted);
  const first = Math.max(0, (at < 0 ? steps.length : at) - Math.floor(limit / 2));
  return steps.slice(first, first + limit);
}

/** Returns the sessions of sub-agents by the calls that started them. */
async function subAgentsByCall(
  { present }: Timeline,
  session: SessionId,
  recorded: RecordedParents | undefined,
): Promise<ReadonlyMap<ObjectId, string>> {
  const all = await subAgentsOf(present, session, recorded);
  return new Map(
    all.flatMap(({ id, session: by, call }) => (by === session && call !== undefined ? [[call, id]] : [])),
  );
}

/** Returns the session that started a sub-agent, and the call that did. */
async function startedBy(asked: Timeline, starter: Starter | undefined) {
  const session = starter === undefined ? undefined : await sessionOf(asked.present, starter.session);
  if (session === undefined) return undefined;
  const timeline = await asked.of(session);
  const step = (await timeline.steps(session)).find(({ call }) => call !== undefined && call.id === starter?.call);
  const calls = await sessionCalls(timeline.present, step === undefined ? [] : [step], timeline.paths);
  return { session, step: step?.seq, name: [...calls.values()][0]?.name };
}

/** Returns rows for changes of files that the session's own calls did not make. */
function changeRows(steps: readonly Step[], { versions, files }: Facts): readonly Row[] {
  const [first, last] = [steps[0], steps.at(-1)];
  if (first === undefined || last === undefined) return [];
  return [...versions].flatMap(([object, all]) =>
    all.flatMap(({ by, number, isFirst, validTime, txId }): readonly Row[] => {
      const at = validTime.getTime();
      if (by.kind === 'agent' || isFirst || at < first.at || at > last.at) return [];
      const step = steps.findLast((one) => one.at <= at) ?? first;
      const name = files.get(object)?.name ?? object;
      const version = { number, validTime, txId };
      return [{ kind: 'change', step: step.seq, turn: step.turn, at: validTime, object, name, version, by } as Row];
    }),
  );
}

/**
 * Returns a part of a session as a conversation: prompts, answers, calls with their results and
 * changes, epochs and events. Changes of files by others stand at their times. `mask` masks texts
 * before they are cut.
 *
 * @throws {HistoryError} `unknown-session`, `beyond-end`
 */
export async function conversation(
  asked: Timeline,
  question: ConversationQuestion,
  mask: ObjectMask = UNMASKED,
): Promise<PageBody<'Conversation'>> {
  const session = await requireSession(asked.present, question.session);
  const timeline = await asked.of(session);
  const steps = await timeline.steps(session);
  const calls = await sessionCalls(timeline.present, steps, timeline.paths);
  const numbers = new Map(steps.filter(({ call }) => call !== undefined).map(({ seq }, i) => [seq, i + 1]));
  const models = modelCallsOf(steps);
  const part = stepsOfPart(steps, numbers, question);
  const [firstSeq, lastSeq] = [part[0]?.seq ?? 0, part.at(-1)?.seq ?? 0];
  const ids = part.flatMap(({ call }) => call?.id ?? []);
  const [inherited, parent, subAgents, heads, actors, records] = await Promise.all([
    inheritedSteps(timeline.present, session, steps),
    readStarter(timeline.present, session),
    subAgentsByCall(timeline, session, question.recorded),
    timeline.present.heads([...new Set(ids)]),
    sessionActors(timeline, session),
    timeline.present.assemblies(session, {
      first: firstSeq,
      last: lastSeq,
      onDamaged: () => undefined,
      beginEpochs: true,
    }),
  ]);
  const shownFiles = [...new Set(ids.flatMap((id) => calls.get(id)?.fileRefs.slice(0, MOST_FILES) ?? []))];
  const changed = new Set(actors.changed);
  const versions = new Map<ObjectId, readonly ActedVersion[]>();
  for (const id of shownFiles) if (changed.has(id)) versions.set(id, await actors.versions(id));
  const inPart = new Set(part.map(({ seq }) => seq));
  const putBack = await actors.putBack((seq) => inPart.has(seq));
  const putBackFiles = [...putBack.values()].flatMap((all) => all.map(({ object }) => object));
  const [found, files, stale, sights, shownLater] = await Promise.all([
    timeline.present.versionsOf([...heads.values()]),
    describe(timeline, [...new Set([...shownFiles, ...putBackFiles])]),
    actors.stale(),
    editSights(timeline, session, ({ seq }) => inPart.has(seq)),
    actors.shownLater(),
  ]);
  const outputs = new Map(
    [...found].flatMap(([id, { version }]) => {
      if (version.type !== 'toolcall') return [];
      const isHidden = mask.hides(id);
      const args = isHidden ? {} : mask.maskedValue(version.args as Json);
      const shown = typeof version.args_display === 'string' ? version.args_display : JSON.stringify(args);
      const output = version.content ?? '';
      return [
        [
          id as string,
          {
            output: isHidden ? MASK : mask.masked(output),
            args: args as object,
            display: isHidden ? MASK : mask.masked(shown),
          },
        ] as const,
      ];
    }),
  );
  const facts: Facts = {
    mask,
    timeline,
    inherited: inherited.steps,
    isSubAgent: parent !== undefined,
    calls,
    numbers,
    answers: callNumbers(models),
    uncounted: uncountedAnswers(steps),
    outputs,
    files,
    subAgents,
    versions,
    putBack,
    sights,
    shownLater,
    stale: new Set(stale.map(({ step }) => step.seq)),
  };
  const turnOf = new Map(steps.map(({ seq, turn }) => [seq, turn]));
  const epochs = bordersOf(records)
    .filter(({ step }) => step >= firstSeq && step <= lastSeq)
    .map(({ step, at, epoch: { number, reason, price } }) =>
      epochRow({ seq: step, at: new Date(at), number, reason, ...defined({ price }) }, turnOf.get(step) ?? 0),
    );
  const rows = [...part.flatMap((step) => rowsOf(step, facts)), ...epochs, ...changeRows(part, facts)];
  const prompts = steps.filter(({ message }) => message !== undefined && speakerOf(message) === 'user');
  const prompt = (prompts.find(({ seq }) => seq > inherited.steps) ?? prompts[0])?.message?.text;
  const firstWords = (text: string): string =>
    (mask.masked(text).trim().split('\n', 1)[0] ?? '').slice(0, MOST_PROMPT).toWellFormed();
  return wireShape(PAGE_ANSWERS.Conversation, {
    session,
    basis: pinnedBasis(timeline.present.basis),
    title: mask
      .masked(prompt ?? '')
      .slice(0, 200)
      .replace(/\s+/g, ' ')
      .trim()
      .toWellFormed(),
    // A masked text does not name a call of another session.
    startedBy: mask === UNMASKED ? await startedBy(asked, parent) : undefined,
    lastStep: steps.at(-1)?.seq ?? 0,
    toolCalls: numbers.size,
    modelCalls: models.length,
    rows: rows.sort((a, b) => a.step - b.step),
    prompts: prompts.map(({ seq, turn, message }) => ({ step: seq, turn, text: firstWords(message?.text ?? '') })),
    ...defined({
      before: firstSeq > (steps[0]?.seq ?? 0) ? firstSeq : undefined,
      after: lastSeq < (steps.at(-1)?.seq ?? 0) ? lastSeq : undefined,
    }),
  });
}
