import type { RecordBody } from '../../objects/context-record.js';
import { defined } from '../../values/defined.js';
import type { PlannedStep } from './planned-step.js';
import { type AnnouncedCall, argumentsOf, type Fields } from './read-messages.js';

/**
 * An approval from the events: the number of planned steps before it, and the content of its
 * record.
 */
export interface ToldApproval {
  readonly behind: number;
  readonly at: number | undefined;
  readonly body: RecordBody<'approval'>;
}

const textOf = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined);
const isCallEvent = ({ type }: Fields): boolean => type === 'tool_call' || type === 'tool_result';

/** Parses the lines of `events.jsonl`. */
export const eventsIn = (lines: readonly string[]): readonly Fields[] =>
  lines.map((line) => JSON.parse(line) as Fields);

/** Returns the calls that the events announce, by id, in order. */
export function toldCalls(events: readonly Fields[]): ReadonlyMap<string, readonly AnnouncedCall[]> {
  const told = new Map<string, AnnouncedCall[]>();
  for (const event of events) {
    if (event.type !== 'tool_call') continue;
    const { id, name } = { id: String(event.id), name: String(event.name) };
    const call = { id, name: id, tool: name, args: argumentsOf(event.arguments ?? event.args ?? event.input) };
    const known = told.get(id);
    if (known === undefined) told.set(id, [call]);
    else known.push(call);
  }
  return told;
}

/**
 * The numbers, from 1, of the planned steps at which runs begin and calls end. Each number is used
 * once.
 */
class StepPlaces {
  readonly #turns: number[];
  readonly #calls = new Map<string, number[]>();

  constructor(steps: readonly PlannedStep[], nameOf: (id: string) => string) {
    this.#turns = steps.flatMap(({ message }, i) => (message?.role === 'user' ? [i + 1] : []));
    for (const [i, { call }] of steps.entries()) {
      if (call?.id === undefined) continue;
      const name = nameOf(call.id);
      const known = this.#calls.get(name);
      if (known === undefined) this.#calls.set(name, [i + 1]);
      else known.push(i + 1);
    }
  }

  begin(): number {
    return this.#turns.shift() ?? 0;
  }

  end(id: string): number {
    return this.#calls.get(id)?.shift() ?? 0;
  }
}

/**
 * Returns for each event the number of planned steps before it. An event of a call is at the call's
 * step, and the start of a run is at a user message. Any other event has the place of the previous
 * event. Places never decrease.
 */
export function placedEvents(
  events: readonly Fields[],
  steps: readonly PlannedStep[],
  nameOf: (id: string) => string,
): readonly number[] {
  const places = new StepPlaces(steps, nameOf);
  const known = new Map<string, number>();
  let place = 0;
  return events.map((event) => {
    const id = textOf(event.id);
    if (event.type === 'start') place = Math.max(place, places.begin());
    if (isCallEvent(event) && id !== undefined) {
      const at = event.type === 'tool_result' ? (known.get(id) ?? places.end(id)) : places.end(id);
      if (event.type === 'tool_call') known.set(id, at);
      else known.delete(id);
      place = Math.max(place, at);
    }
    return place;
  });
}

function decidedState(decision: string): RecordBody<'approval'>['state'] {
  if (/^(?:allow|approve)/.test(decision)) return 'approved';
  if (/^(?:deny|denied|reject)/.test(decision)) return 'denied';
  return decision === 'expired' ? 'expired' : 'cancelled';
}

/** Returns the requested and the decided approvals in the events. */
export function toldApprovals(events: readonly Fields[], places: readonly number[]): readonly ToldApproval[] {
  return events.flatMap((event, i): readonly ToldApproval[] => {
    const { type, id, name, args, decision, reason, at } = event;
    if (type !== 'approval_request' && type !== 'approval_result') return [];
    const common = { approval: String(id), tool: String(name) };
    const time = Date.parse(textOf(at) ?? '');
    const place = { behind: places[i] ?? 0, at: Number.isNaN(time) ? undefined : time };
    if (type === 'approval_request')
      return [{ ...place, body: { ...common, state: 'pending', text: Array.isArray(args) ? args.join(' ') : '' } }];
    return [
      {
        ...place,
        body: { ...common, state: decidedState(String(decision)), text: '', ...defined({ reason: textOf(reason) }) },
      },
    ];
  });
}
