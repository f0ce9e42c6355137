import type { SectionName } from '../../assembly/assembly-record.js';
import type { EpochContext } from '../../assembly/epoch/epoch-state.js';
import type { RenderedMessage } from '../../assembly/render-messages.js';
import type { Rendered, RendererName } from '../../assembly/renderers.js';
import { type SentPart, sentParts } from '../../assembly/sent-body.js';
import type { RebuiltAssembly } from '../../history/rebuild/rebuilt-assembly.js';
import type { AssemblyProof } from '../../objects/assembly-proof.js';
import { canonicalJson, type Json } from '../../objects/canonical-json.js';
import { chatObjectId, type ObjectId } from '../../objects/ids.js';
import type { Step } from '../../objects/step.js';
import { namesOf } from '../../session/chat-places.js';
import type { StoreSnapshot } from '../../store/store-snapshot.js';
import { defined } from '../../values/defined.js';

/** A part of a request, in its order: from one of our sections or from the harness's own list. */
export interface RequestPiece {
  readonly section: SectionName | 'list';
  readonly text: string;
  readonly object?: ObjectId;
  /** For the harness's list: the step of the message or call. */
  readonly step?: Step;
  /** Length of the text as the model saw it, if it is stored without its line numbers. */
  readonly chars?: number;
}

/** Scales the tokens of a stored text to the length that the model saw. */
export const shownTokens = ({ text, chars }: Pick<RequestPiece, 'text' | 'chars'>, tokens: number): number =>
  chars === undefined || text === '' ? tokens : Math.round((tokens * chars) / text.length);

/** The recorded arguments and output of every call. */
export type CallTexts = ReadonlyMap<ObjectId, { readonly head: string; readonly output: string }>;

/** The sources of pieces besides the context itself. */
export interface RecordedList {
  /** The session's steps, oldest first. */
  readonly steps: readonly Step[];
  readonly calls: CallTexts;
  /** Returns the step at which the harness's list had `count` messages in an epoch of contexts. */
  readonly stepOf: (count: number) => number | undefined;
}

/**
 * Returns whether a harness adds its own messages to a context. Otherwise the context, or the
 * request of an epoch, is the whole request.
 */
export const hasOwnList = ({ tail, epoch, sent }: AssemblyProof): boolean =>
  sent !== undefined || (tail !== undefined && (epoch === undefined || epoch.list !== undefined));

/** Returns the steps whose messages and calls a harness adds to a context. */
export function listSteps({ proof }: Pick<RebuiltAssembly, 'proof'>, steps: readonly Step[]): readonly Step[] {
  const { tail, epoch, step: last } = proof;
  if (tail === undefined || !hasOwnList(proof)) return [];
  // If an epoch began inside a turn, its base contains the turn up to that step.
  const border = epoch?.border ?? Number.POSITIVE_INFINITY;
  return steps.filter((step) => step.seq <= last && (step.turn >= tail.turn || step.seq > border));
}

/** Reads the arguments and outputs of calls. */
export async function callTexts(present: StoreSnapshot, steps: readonly Step[]): Promise<CallTexts> {
  const heads = await present.heads([...new Set(steps.flatMap(({ call }) => call?.id ?? []))]);
  const versions = await present.versionsOf([...heads.values()]);
  return new Map(
    [...versions].flatMap(([id, { version }]) =>
      version.type === 'toolcall'
        ? [
            [
              id,
              { head: `${version.tool} ${canonicalJson(version.args as Json)}`, output: version.content ?? '' },
            ] as const,
          ]
        : [],
    ),
  );
}

type Parts = readonly RequestPiece[];

const partsOf = (messages: readonly RenderedMessage[]): Parts =>
  messages.flatMap(({ section, parts }) =>
    parts.map(({ text, id }) => ({ section, text, ...defined({ object: id }) })),
  );

const systemPart = (system: string | null): Parts => (system === null ? [] : [{ section: 'system', text: system }]);

/** Returns the harness's messages for one step. A result may be replaced by a line. */
function stepParts(step: Step, calls: CallTexts, references: ReadonlyMap<string, string>): Parts {
  const { message, call, session } = step;
  const said =
    message === undefined
      ? []
      : [{ section: 'list', text: `${message.role}: ${message.text}`, object: chatObjectId(session), step }];
  const texts = call === undefined ? undefined : calls.get(call.id);
  if (call === undefined || texts === undefined) return said as Parts;
  const at = { section: 'list', object: call.id, step };
  return [...said, { ...at, text: texts.head }, { ...at, text: references.get(call.id) ?? texts.output }] as Parts;
}

/**
 * Returns the known parts of a request without a record: the session's messages and calls before
 * it. System prompt, tools and order of the request are unknown.
 */
export const knownPieces = (steps: readonly Step[], calls: CallTexts): Parts =>
  steps.flatMap((step) => stepParts(step, calls, new Map())).filter(({ text }) => text !== '');

/** Splits one text at the ends of sections and of active content blocks. */
function textParts({ whole, sections, record }: Rendered): Parts {
  let at = 0;
  return sections.flatMap(({ name, text }, i): Parts => {
    const start = whole.indexOf(text, at);
    const end = i + 1 === sections.length ? whole.length : start + text.length;
    const cuts =
      name === 'active'
        ? record.blocks.map(({ id, offset, chars }) => ({ end: offset + chars, object: id }))
        : [{ end, object: undefined }];
    return cuts.map(({ end: to, object }) => {
      const piece = { section: name, text: whole.slice(at, to), ...defined({ object }) };
      at = to;
      return piece;
    });
  });
}

/** Returns the steps of calls by each id that an agent may use. The last call of an id wins. */
function stepsByCall(steps: readonly Step[]): ReadonlyMap<string, Step> {
  return new Map(
    steps.flatMap((step) =>
      step.call === undefined ? [] : [...namesOf(step.call.id)].map((name) => [name, step] as const),
    ),
  );
}

/** Finds the steps of messages by role and text, each step once and in order. */
class MessageSteps {
  readonly #steps: readonly Step[];
  #next = 0;

  constructor(steps: readonly Step[]) {
    this.#steps = steps;
  }

  stepOf({ role, said }: SentPart): Step | undefined {
    if (said === undefined || said.trim() === '') return undefined;
    const wanted = said.trim();
    const isSame = ({ message }: Step): boolean =>
      message !== undefined && (message.role === 'assistant') === isModel(role) && message.text.trim() === wanted;
    for (let at = this.#next; at < this.#steps.length; at += 1) {
      const step = this.#steps[at] as Step;
      if (!isSame(step)) continue;
      this.#next = at + 1;
      return step;
    }
    return undefined;
  }
}

/** Gemini calls the model's role `model`. */
const isModel = (role: string | undefined): boolean => role === 'assistant' || role === 'model';

/**
 * Splits a request that an agent built itself. A message or call that a step of the session
 * recorded refers to that step.
 */
function sentPieces(body: string, steps: readonly Step[]): Parts {
  const byCall = stepsByCall(steps);
  const messages = new MessageSteps(steps);
  return sentParts(body).map((part): RequestPiece => {
    const { text, call } = part;
    if (part.section === 'system') return { section: 'system', text };
    const step = call === undefined ? messages.stepOf(part) : byCall.get(call);
    const object: ObjectId | undefined = call === undefined ? step && chatObjectId(step.session) : step?.call?.id;
    return { section: 'list', text, ...defined({ object, step }) };
  });
}

const PIECES: Readonly<Record<RendererName, (rebuilt: RebuiltAssembly, list: RecordedList) => Parts>> = {
  text: ({ rendered }) => textParts(rendered),
  messages: ({ rendered }) => {
    const { system, messages } = JSON.parse(rendered.whole) as {
      system: string | null;
      messages: readonly RenderedMessage[];
    };
    return [...systemPart(system), ...partsOf(messages)];
  },
  around: (rebuilt, { steps, calls }) => {
    const { system, before, references, after } = JSON.parse(rebuilt.rendered.whole) as {
      readonly system: string | null;
      readonly before: readonly RenderedMessage[];
      readonly references: readonly (readonly [string, string])[];
      readonly after: readonly RenderedMessage[];
    };
    const lines = new Map(references);
    const list = listSteps(rebuilt, steps).flatMap((step) => stepParts(step, calls, lines));
    return [...systemPart(system), ...partsOf(before), ...list, ...partsOf(after)];
  },
  epoch: (rebuilt, { steps, calls, stepOf }) => {
    const {
      system,
      before,
      notes,
      lines = [],
    } = JSON.parse(rebuilt.rendered.whole) as Pick<EpochContext, 'system' | 'before' | 'notes'> & {
      readonly lines?: readonly (readonly [string, string])[];
    };
    const answered = new Map(lines);
    const list = listSteps(rebuilt, steps).map((step) => ({ seq: step.seq, parts: stepParts(step, calls, answered) }));
    const noted = notes.map(({ after, message }) => ({
      seq: stepOf(after) ?? rebuilt.proof.step,
      parts: partsOf([message]),
    }));
    // A note follows the step that was newest when the note was made.
    const rest = [...list, ...noted].sort((a, b) => a.seq - b.seq);
    return [...systemPart(system), ...partsOf(before), ...rest.flatMap(({ parts }) => parts)];
  },
  sent: ({ rendered, proof }, { steps }) =>
    sentPieces(
      rendered.whole,
      steps.filter(({ seq }) => seq <= proof.step),
    ),
};

/**
 * Rebuilds a past request in parts: the context byte for byte as sent, and the harness's own
 * messages from their recorded texts. Tool definitions, reasoning and the provider's notation are
 * not recorded, so no part contains them.
 */
export function requestPieces(rebuilt: RebuiltAssembly, list: RecordedList): readonly RequestPiece[] {
  return PIECES[rebuilt.rendered.record.renderer](rebuilt, list).filter(({ text }) => text !== '');
}
