import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { makeBundle } from '../../../src/contracts/agent-context/bundle.js';
import { bundleFindings } from '../../../src/contracts/agent-context/check-bundle.js';
import { bundleFiles } from '../../../src/contracts/agent-context/write-bundle.js';
import { callsIn } from '../../../src/contracts/amplifier/amplifier-message.js';
import { messagesView } from '../../../src/contracts/amplifier/amplifier-view.js';
import { listedEntries } from '../../../src/contracts/amplifier/message-list.js';
import { fileFindings, linesOf } from '../../../src/contracts/cortexfs/check-file.js';
import { CortexfsError } from '../../../src/contracts/cortexfs/errors.js';
import { sessionDirectory } from '../../../src/contracts/cortexfs/session-directory.js';
import { budgetedView } from '../../../src/contracts/projection/budgeted-view.js';
import { ProjectionError } from '../../../src/contracts/projection/errors.js';
import type { Projection } from '../../../src/contracts/projection/project-session.js';
import { NO_VIEW } from '../../../src/contracts/projection/shrink-view.js';
import { viewRecords } from '../../../src/contracts/projection/view-records.js';
import { compactConversation } from '../../../src/contracts/tyrum/compact-conversation.js';
import { sessionFacts } from '../../../src/contracts/tyrum/session-facts.js';
import { messagesOf } from '../../../src/contracts/tyrum/visible-prompt.js';
import { canonicalJson, type Json } from '../../../src/objects/canonical-json.js';
import { contextRecord } from '../../../src/objects/context-record.js';
import { BYTES, happenings, projectionOf, WORDS } from '../../support/any-session.js';
import { effort } from '../../support/effort.js';
import { type PairedItem, pairFindings } from '../../support/pair-check.js';

/** A contract's view of a session within a budget. */
interface Shown {
  /** Counted independently from the view. */
  readonly tokens: number;
  /** Lists of messages: the whole history if the contract has one, and the list for the model. */
  readonly lists: readonly (readonly PairedItem[])[];
  /** All text that it writes. */
  readonly text: string;
}

interface LineFields {
  readonly role: string;
  readonly content: unknown;
  readonly tool_calls?: readonly { readonly id: string }[];
}

function pairedLine(text: string): PairedItem {
  const { role, content, tool_calls: calls = [] } = JSON.parse(text) as LineFields;
  if (role === 'tool')
    return { kind: 'result', call: (content as readonly { readonly tool_call_id: string }[])[0]?.tool_call_id ?? '' };
  if (role === 'assistant') return { kind: 'assistant', calls: calls.map(({ id }) => id) };
  return { kind: role === 'user' ? 'user' : 'other' };
}

/** Returns the lines of the pack's tail. */
function packedLines(json: string, lines: readonly string[]): readonly string[] {
  const { items } = JSON.parse(json) as {
    readonly items: readonly { readonly source: string; readonly range?: string }[];
  };
  const tail = items.find(({ source, range }) => source === 'messages.jsonl' && range?.startsWith('tail:'));
  return tail === undefined ? [] : lines.slice(lines.length - Number(tail.range?.slice('tail:'.length)));
}

/** Counts the tokens of a request: its texts, and its calls by name and arguments. */
function counted(
  { counter }: Projection,
  messages: readonly {
    readonly text: string;
    readonly calls: readonly { readonly tool: string; readonly args: string }[];
  }[],
): number {
  const ofCall = ({ tool, args }: { readonly tool: string; readonly args: string }): number =>
    counter.count(tool) + counter.count(args) + counter.perCall;
  return messages.reduce(
    (sum, { text, calls }) =>
      sum + counter.count(text) + counter.perMessage + calls.reduce((all, call) => all + ofCall(call), 0),
    0,
  );
}

const kept = { bySeq: new Map(), prompts: [], from: 0 };

/** The four contracts, each as a function of a session and a budget. */
const SURFACES: Readonly<Record<string, (projection: Projection, budget: number) => Shown | Promise<Shown>>> = {
  cortexfs: (projection, limit) => {
    const { files, pack } = sessionDirectory(projection, [], { budget: `${limit}\n`, limit });
    for (const [path, text] of files) expect(fileFindings(path, text)).toEqual([]);
    expect(files.get('context/pack.md')).toBe(pack.markdown);
    const lines = linesOf(files.get('messages.jsonl') ?? '');
    return {
      tokens: projection.counter.count(pack.markdown),
      lists: [lines, packedLines(pack.json, lines)].map((list) => list.map(pairedLine)),
      text: [...files].flat().join('\n'),
    };
  },
  'agent-context': (projection, tokens) => {
    const view = budgetedView(projection, { tokens });
    const records = viewRecords(projection, view, { target: 'model', trigger: 'token_pressure', at: 9_000 }).map(
      contextRecord,
    );
    const source = {
      projection,
      scope: 'session',
      steps: [],
      delivered: [],
      redactions: [],
      redactedTexts: () => [],
    } as const;
    const bundle = makeBundle({ ...source, records: records as never });
    expect(bundleFindings(bundle)).toEqual([]);
    const made = new Map(bundle.sources.map((one) => [one.source_id, String(one.metadata?.object_id)]));
    const items = bundle.items.map(({ item_id: id, context_kind: kind, source_refs: [of = ''] = [], metadata }) => {
      const calls = (metadata?.tool_calls ?? []) as readonly string[];
      const one: PairedItem =
        metadata?.call_item === undefined
          ? calls.length > 0 || kind === 'session_history'
            ? { kind: 'assistant', calls }
            : { kind: 'other' }
          : { kind: 'result', call: made.get(of) ?? '' };
      return { id, one };
    });
    const replaced = new Set(
      bundle.compactions.flatMap(({ coverage }) => (coverage?.replaced ?? []) as readonly string[]),
    );
    const [limited] = bundle.budgets.filter((one) => one.max_tokens !== undefined);
    expect(limited?.max_tokens).toBe(tokens);
    const segments = bundle.windows
      .filter(({ budget_ref: of }) => of === limited?.budget_id)
      .flatMap((window) => window.segments);
    expect(segments.reduce((sum, { actual_tokens: taken = 0 }) => sum + taken, 0)).toBe(limited?.actual_tokens);
    return {
      tokens: limited?.actual_tokens ?? Number.POSITIVE_INFINITY,
      lists: [items, items.filter(({ id }) => !replaced.has(id))].map((list) => list.map(({ one }) => one)),
      text: [...bundleFiles(bundle)].flat().join('\n'),
    };
  },
  amplifier: (projection, budget) => {
    const { counter } = projection;
    const { messages } = messagesView(listedEntries(projection, kept), {
      kept,
      wish: { budget },
      counter,
      state: NO_VIEW,
    });
    const list = messages.map(({ message }) => ({ message, calls: callsIn(message) }));
    return {
      tokens: counted(
        projection,
        list.map(({ message, calls }) => ({
          text: String(message.content),
          calls: calls.map((call) => ({ tool: call.name, args: String(call.arguments) })),
        })),
      ),
      lists: [
        list.map(({ message: { role, tool_call_id: call }, calls }): PairedItem => {
          if (role === 'tool') return { kind: 'result', call: call ?? '' };
          return role === 'assistant'
            ? { kind: 'assistant', calls: calls.map(({ id }) => id) }
            : { kind: role === 'user' ? 'user' : 'other' };
        }),
      ],
      text: JSON.stringify(messages),
    };
  },
  tyrum: async (projection, tokens) => {
    const conversation = { projection, facts: sessionFacts(projection, []), state: NO_VIEW, compactedAt: undefined };
    const { view, state } = await compactConversation(
      conversation,
      { tokens, reason: 'token_pressure' },
      { at: 9_000 },
    );
    const messages = messagesOf(view.items);
    return {
      tokens: counted(
        projection,
        messages.map(({ content: text, tool_calls: calls = [] }) => ({
          text,
          calls: calls.map(({ tool_name: tool, args }) => ({ tool, args: canonicalJson(args) })),
        })),
      ),
      lists: [
        messages.map(({ role, tool_call_id: call, tool_calls: calls = [] }): PairedItem => {
          if (role === 'tool') return { kind: 'result', call: call ?? '' };
          const named = calls.map(({ tool_call_id: id }) => id);
          return role === 'assistant'
            ? { kind: 'assistant', calls: named }
            : { kind: role === 'user' ? 'user' : 'other' };
        }),
      ],
      text: JSON.stringify([messages, state]),
    };
  },
};

/** Returns the view, or the error for an impossible one. */
async function shownOn(surface: string, projection: Projection, budget: number): Promise<Shown | Error> {
  try {
    return await (SURFACES[surface] as (typeof SURFACES)[string])(projection, budget);
  } catch (error) {
    if (error instanceof ProjectionError || error instanceof CortexfsError) return error;
    throw error;
  }
}

function frozen<Value>(value: Value): Value {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value;
  Object.freeze(value);
  for (const inside of Object.values(value)) frozen(inside);
  return value;
}

/** Mostly budgets that force some but not all content out. */
const budgets = fc.oneof(
  { weight: 3, arbitrary: fc.integer({ min: 150, max: 1_500 }) },
  fc.integer({ min: 1, max: 6_000 }),
);

describe('any history within any budget', () => {
  test.each(Object.keys(SURFACES))(
    'keeps limit and pairs, is deterministic and changes nothing on the surface %s',
    async (surface) => {
      await fc.assert(
        fc.asyncProperty(happenings, budgets, fc.constantFrom(BYTES, WORDS), async (all, budget, counter) => {
          // A write to it throws.
          const projection = frozen(projectionOf(all, counter));
          const before = JSON.stringify([projection.entries, projection.sets]);
          const shown = await shownOn(surface, projection, budget);
          const again = await shownOn(surface, projectionOf(all, counter), budget);
          expect(JSON.stringify([projection.entries, projection.sets])).toBe(before);
          if (shown instanceof Error) {
            expect(shown).toMatchObject({
              code: 'budget-too-small',
              message: expect.stringMatching(/give at least \d+/),
            });
            expect(again).toEqual(shown);
            return;
          }
          expect(again).toEqual(shown);
          expect(shown.tokens).toBeLessThanOrEqual(budget);
          expect(shown.text.isWellFormed()).toBe(true);
          const open = new Set(projection.running?.calls.map(({ native }): Json => native));
          for (const list of shown.lists) {
            const findings = pairFindings(list, { running: true }).filter(
              ({ rule, call }) => rule !== 'unfinished-turn' && !(rule === 'missing-result' && open.has(call ?? '')),
            );
            expect(findings).toEqual([]);
          }
        }),
        { numRuns: effort(80, 1_000) },
      );
    },
  );
});
