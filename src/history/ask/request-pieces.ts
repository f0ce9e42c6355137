import type { SectionName } from '../../assembly/assembly-record.js';
import type { EpochContext } from '../../assembly/epoch/epoch-state.js';
import type { RenderedMessage } from '../../assembly/render-messages.js';
import type { Rendered, RendererName } from '../../assembly/renderers.js';
import type { AssemblyProof } from '../../objects/assembly-proof.js';
import { canonicalJson, type Json } from '../../objects/canonical-json.js';
import { chatObjectId, type ObjectId } from '../../objects/ids.js';
import type { Step } from '../../objects/step.js';
import type { StoreSnapshot } from '../../store/store-snapshot.js';
import { defined } from '../../values/defined.js';
import type { RebuiltAssembly } from '../rebuild/rebuilt-assembly.js';

/** A part of a request, in the order of the request: of a section of ours, or of the harness's own list. */
export interface RequestPiece {
  readonly section: SectionName | 'list';
  readonly text: string;
  readonly object?: ObjectId;
  /** Of the harness's own list: the step of the message or call. */
  readonly step?: Step;
}

/** Every call's arguments and output, as recorded. */
export type CallTexts = ReadonlyMap<ObjectId, { readonly head: string; readonly output: string }>;

/** What pieces are made from beside the context itself. */
export interface RecordedList {
  /** The session's steps, oldest first. */
  readonly steps: readonly Step[];
  readonly calls: CallTexts;
  /** The step at which an epoch's list had so many messages. */
  readonly stepOf: (count: number) => number | undefined;
}

/** Whether a harness sends messages of its own with a context; where it does not, the context, or the request of an epoch, is all that there is. */
export const hasOwnList = ({ tail, epoch }: AssemblyProof): boolean =>
  tail !== undefined && (epoch === undefined || epoch.list !== undefined);

/** The steps whose messages and calls a harness sends itself with a context; none where it sends none. */
export function listSteps({ proof }: Pick<RebuiltAssembly, 'proof'>, steps: readonly Step[]): readonly Step[] {
  const { tail, epoch, step: last } = proof;
  if (tail === undefined || !hasOwnList(proof)) return [];
  // After a border inside a turn, what that turn had said until then stands in the base.
  const border = epoch?.border ?? Number.POSITIVE_INFINITY;
  return steps.filter((step) => step.seq <= last && (step.turn >= tail.turn || step.seq > border));
}

/** The arguments and outputs of calls. */
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

/** What a harness sends of one step; a result may have a line instead. */
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

/** One text, cut where a section or a block of active content ends. */
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
    // A note stands behind the step that was the newest when it was made.
    const rest = [...list, ...noted].sort((a, b) => a.seq - b.seq);
    return [...systemPart(system), ...partsOf(before), ...rest.flatMap(({ parts }) => parts)];
  },
};

/**
 * A request of the past in its parts: ours byte for byte as they were handed out, the harness's own messages by their recorded texts. Tool definitions,
 * reasoning and the notation of the provider are not recorded and stand in none.
 */
export function requestPieces(rebuilt: RebuiltAssembly, list: RecordedList): readonly RequestPiece[] {
  return PIECES[rebuilt.rendered.record.renderer](rebuilt, list).filter(({ text }) => text !== '');
}
