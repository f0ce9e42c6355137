import type { AnswerPiece, AnswerProof, Step } from '../objects/step.js';
import { defined } from '../values/defined.js';
import type { MaskedNames } from './masked-names.js';

/** Facts about the bundle's content that masking a step needs. */
export interface BundleContent {
  /** Objects with masked text in one of their versions. */
  readonly masked: ReadonlySet<string>;
  /** Pairs `<id> <hash>` of an object and a text that masking left unchanged. */
  readonly held: ReadonlySet<string>;
}

type Masked<Name extends keyof Step> = (value: NonNullable<Step[Name]>, names: MaskedNames) => Step[Name];

const same = <Value>(value: Value): Value => value;
const ids = <Value>(value: Value, names: MaskedNames): Value => names.ids(value);

/**
 * How to mask each member of a step except its call. The compiler requires an entry for each
 * member.
 */
const MASKED: { readonly [Name in keyof Required<Step>]: Masked<Name> } = {
  session: same,
  seq: same,
  turn: same,
  at: same,
  opens: (opens, names) => ({ ...opens, ...defined({ ref: opens.ref && names.text(opens.ref) }) }),
  message: ({ role, text, name, toolcall_refs }, names) => ({
    role: names.text(role),
    text: names.text(text),
    ...defined({ name: name && names.text(name), toolcall_refs: names.ids(toolcall_refs) }),
  }),
  call: same,
  changes: ids,
  fresh: ids,
  native: (native, names) => names.text(native),
  usage: (usage, names) => ({
    ...usage,
    ...defined({ model: usage.model && names.text(usage.model) }),
    ...defined({ cacheMiss: usage.cacheMiss && { ...usage.cacheMiss, reason: names.text(usage.cacheMiss.reason) } }),
  }),
  event: (event, names) => ({ ...event, ...defined({ detail: event.detail && names.text(event.detail) }) }),
  notes: (notes, names) => notes.map((note) => names.text(note)),
  by: same,
  undoes: same,
  erased: same,
};

/**
 * Returns the proof of an answer if unmasked content of the bundle can reproduce the answer. Other
 * proofs are left out: they would reveal the hash of content that the bundle lacks.
 */
function provedAnswer(
  { id, answer }: NonNullable<Step['call']>,
  names: MaskedNames,
  { masked, held }: BundleContent,
): { readonly answer?: AnswerProof } {
  if (answer === undefined) return {};
  const isPlain = (piece: AnswerPiece): boolean =>
    typeof piece === 'string' ? names.text(piece) === piece : !masked.has(piece.id ?? id);
  const isHeld = held.has(`${id} ${answer.sha256}`) || (answer.pieces?.every(isPlain) ?? false);
  if (!isHeld) return {};
  const renamed = (piece: AnswerPiece): AnswerPiece =>
    typeof piece === 'string' ? piece : { ...piece, ...defined({ id: piece.id && names.id(piece.id) }) };
  return { answer: { ...answer, ...defined({ pieces: answer.pieces?.map(renamed) }) } };
}

/** Masks the texts and the names of a step. */
export function maskedStep(step: Step, names: MaskedNames, content: BundleContent): Step {
  const entries = Object.entries(step).map(([name, value]) => [
    name,
    MASKED[name as keyof Step](value as never, names),
  ]);
  const made = Object.fromEntries(entries) as unknown as Step;
  const { call } = step;
  return call === undefined
    ? made
    : { ...made, call: { ...defined({ by: call.by }), id: names.id(call.id), ...provedAnswer(call, names, content) } };
}
