import { describe, expect, test } from '@jest/globals';
import { sessionRequests } from '../../../src/history/rebuild/session-requests.js';
import {
  entriesAt,
  replacedAt,
  replacedResult,
  transcriptEntries,
} from '../../../src/history/rebuild/transcript-entries.js';
import { presencesOf, presentAt } from '../../../src/history/rebuild/transcript-presence.js';
import { callRanges } from '../../../src/history/search/exposure.js';
import type { AssemblyProof } from '../../../src/objects/assembly-proof.js';
import type { HistoryEvent, Step } from '../../../src/objects/step.js';
import { transcriptColumns, transcriptWays } from '../../../src/page/server/transcript-strip.js';

const stepAt = (seq: number, more: object): Step =>
  ({ session: 's', seq, turn: 1, at: 1_000 * seq, changes: {}, ...more }) as unknown as Step;
const said = (seq: number, role: string, more: object = {}): Step =>
  stepAt(seq, { message: { role, text: `${role} ${seq}` }, ...more });
const called = (seq: number, id: string, activate: readonly string[] = []): Step =>
  stepAt(seq, { call: { id }, changes: { index: [id, ...activate], activate: [id, ...activate] } });
const event = (seq: number, of: Partial<HistoryEvent>): Step => stepAt(seq, { event: { kind: 'compacted', ...of } });
const stepsOf = (steps: readonly Step[], step: number): readonly string[] =>
  entriesAt(transcriptEntries(steps), step).map((entry) => `${entry.kind} ${entry.step.seq}`);

const count = { usage: { input: 100, output: 1 } };
/** A read of a file, two parallel reads, a compaction, and a read of a part. */
const SESSION: readonly Step[] = [
  said(1, 'user'),
  said(2, 'assistant', count),
  called(3, 'whole', ['file']),
  said(4, 'assistant', count),
  called(5, 'one'),
  called(6, 'two'),
  event(7, { detail: 'What was done.' }),
  said(8, 'user'),
  said(9, 'assistant', count),
  called(10, 'part'),
  said(11, 'assistant', count),
];

describe('the requests of a transcript', () => {
  test('have every message and call before them, and after a compaction its summary', () => {
    expect(stepsOf(SESSION, 3)).toEqual(['message 1', 'message 2', 'call 3']);
    expect(stepsOf(SESSION, 6)).toEqual(['message 1', 'message 2', 'call 3', 'message 4', 'call 5', 'call 6']);
    expect(stepsOf(SESSION, 8)).toEqual(['summary 7', 'message 8']);
    expect(stepsOf(SESSION, 10)).toEqual(['summary 7', 'message 8', 'message 9', 'call 10']);
  });

  test('keep the entries that a compaction kept, in front of its summary', () => {
    const steps = [said(1, 'user'), said(2, 'assistant'), called(3, 'a'), event(4, { detail: 'Sum', kept: 1 })];
    expect(stepsOf(steps, 4)).toEqual(['message 1', 'summary 4']);
    expect(transcriptEntries(steps).compactions).toMatchObject([{ dropped: [{ until: 4 }, { until: 4 }], unnamed: 0 }]);
  });

  test('keep all results if a compaction cleared some and does not name them', () => {
    const steps = [said(1, 'user'), called(2, 'a'), called(3, 'b'), event(4, { missing: 1 }), said(5, 'user')];
    expect(stepsOf(steps, 5)).toEqual(['message 1', 'call 2', 'call 3', 'message 5']);
    expect(transcriptEntries(steps).compactions).toMatchObject([{ dropped: [], unnamed: 1 }]);
  });

  test('keep the entries behind the summary from the step on that a compaction names', () => {
    const steps = [
      said(1, 'user'),
      called(2, 'a'),
      said(3, 'user'),
      called(4, 'b'),
      event(5, { detail: 'Sum', keptFrom: 3 }),
      said(6, 'user'),
      event(7, { detail: 'Again', keptFrom: 6 }),
    ];
    expect(stepsOf(steps, 4)).toEqual(['message 1', 'call 2', 'message 3', 'call 4']);
    expect(stepsOf(steps, 6)).toEqual(['summary 5', 'message 3', 'call 4', 'message 6']);
    expect(stepsOf(steps, 7)).toEqual(['summary 7', 'message 6']);
  });

  test('lack the entries that a compaction names, and have its summary in their place', () => {
    const steps = [said(1, 'user'), called(2, 'a'), called(3, 'b'), event(4, { detail: 'Sum', gone: [2] })];
    expect(stepsOf(steps, 4)).toEqual(['message 1', 'summary 4', 'call 3']);
  });

  test('lack the results that a compaction names, and their files', () => {
    const steps = [said(1, 'user'), called(2, 'a', ['file']), called(3, 'b'), event(4, { missing: 2, gone: [2] })];
    const told = transcriptEntries(steps);
    expect(stepsOf(steps, 4)).toEqual(['message 1', 'call 2', 'call 3']);
    expect(told.entries.map((entry) => replacedAt(entry, 4))).toEqual([undefined, '', undefined]);
    expect(told.compactions).toMatchObject([{ unnamed: 1 }]);
    const call = { tool: 'read', args: { path: 'f' }, failed: false, fileRefs: ['file'] as never };
    const file = presencesOf(told, () => call).get('file' as never);
    expect([presentAt(file, 3), presentAt(file, 4)]).toEqual(['whole', 'whole']);
    const only = presencesOf(transcriptEntries(steps.filter(({ seq }) => seq !== 3)), () => call).get('file' as never);
    expect([presentAt(only, 2), presentAt(only, 4)]).toEqual(['whole', undefined]);
  });

  test('show a replaced result from the step on at which it was replaced', () => {
    const steps = [
      said(1, 'user'),
      called(2, 'toolu_1@s'),
      event(3, { kind: 'shortened', detail: replacedResult('toolu_1', 'see the file') }),
      event(4, { kind: 'shortened', detail: 'of another program' }),
    ];
    const [, entry] = transcriptEntries(steps).entries;
    expect(entry && [replacedAt(entry, 2), replacedAt(entry, 3), replacedAt(entry, 9)]).toEqual([
      undefined,
      'see the file',
      'see the file',
    ]);
  });

  test('are one for each answer, and a recorded request comes before the transcript of its call', () => {
    const told = { steps: SESSION, isTranscript: true };
    const shown = (records: readonly AssemblyProof[]) =>
      sessionRequests({ ...told, records }).map(({ kind, step, usage }) => [kind, step, usage?.input]);
    expect(shown([])).toEqual([1, 3, 8, 10].map((step) => ['transcript', step, 100]));
    const proof = { turn: 1, step: 3, at: 0, sent: { wire: 'anthropic' } } as AssemblyProof;
    const replayed = { ...proof, delivered: 'replay' } as const;
    expect(shown([{ ...proof, delivered: 'gateway' }, replayed])[1]).toEqual(['sent', 3, 100]);
    expect(shown([replayed]).map(([kind]) => kind)).toEqual(Array.from({ length: 4 }, () => 'transcript'));
    expect(sessionRequests({ ...told, isTranscript: false, records: [replayed] })).toEqual([]);
    const [first] = sessionRequests({ steps: [said(1, 'assistant')], records: [], isTranscript: true });
    expect([first?.step, first?.call?.step]).toEqual([1, 0]);
  });
});

describe('an object in the requests of a transcript', () => {
  const told = transcriptEntries(SESSION);
  const presences = presencesOf(told, (id) => {
    const args = id === 'whole' ? { path: 'a.ts' } : { path: 'a.ts', offset: 1, limit: 5 };
    const isRead = id === 'whole' || id === 'part';
    return { tool: isRead ? 'read' : 'bash', args, failed: false, fileRefs: isRead ? (['file'] as never) : [] };
  });

  test('is whole from the read that brought it until a compaction drops it', () => {
    const at = (id: string, step: number) => presentAt(presences.get(id as never), step);
    expect([2, 3, 6, 7, 9, 10].map((step) => at('file', step))).toEqual([
      undefined,
      'whole',
      'whole',
      undefined,
      undefined,
      'part',
    ]);
    expect([at('one', 5), at('one', 6), at('one', 7)]).toEqual(['whole', 'whole', undefined]);
    expect(transcriptWays(presences, SESSION).get('file' as never)).toEqual([
      { step: 3, state: 'active' },
      { step: 7, state: 'out' },
      { step: 10, state: 'part' },
    ]);
  });

  test('counts in the sizes of the columns with its shown length', () => {
    const calls = new Map(
      ['whole', 'one', 'two', 'part'].map((id) => [id as never, { tool: 'read', args: {}, chars: 1_000 }] as const),
    );
    const requests = sessionRequests({ steps: SESSION, records: [], isTranscript: true });
    const columns = transcriptColumns(requests, told, { prompt: 10, calls });
    const call = 1_000 + 'read {}'.length;
    const message = (n: number, role: string): number => `${role}: ${role} ${n}`.length;
    expect(requests.map((request) => columns.get(request)?.sections)).toEqual([
      [
        { name: 'system', chars: 10 },
        { name: 'chat', chars: message(1, 'user') },
      ],
      [
        { name: 'system', chars: 10 },
        { name: 'chat', chars: message(1, 'user') + message(2, 'assistant') },
        { name: 'active', chars: call },
      ],
      [
        { name: 'system', chars: 10 },
        { name: 'chat', chars: 'What was done.'.length + message(8, 'user') },
      ],
      [
        { name: 'system', chars: 10 },
        { name: 'chat', chars: 'What was done.'.length + message(8, 'user') + message(9, 'assistant') },
        { name: 'active', chars: call },
      ],
    ]);
    const inFull = (step: number): boolean => presentAt(presences.get('whole' as never), step) === 'whole';
    expect(callRanges([1, 3, 8, 10], inFull)).toEqual([{ from: 3, to: 3, calls: 1 }]);
  });
});
