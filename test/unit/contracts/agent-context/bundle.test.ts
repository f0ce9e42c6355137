import { mkdir, mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { type BundleSource, makeBundle } from '../../../../src/contracts/agent-context/bundle.js';
import { type Bundle, objectsOf, PART_NAMES } from '../../../../src/contracts/agent-context/bundle-parts.js';
import { bundleFindings, checkBundle } from '../../../../src/contracts/agent-context/check-bundle.js';
import { statusFindings, withoutStatus } from '../../../../src/contracts/agent-context/status-scan.js';
import { bundleFiles, writeBundle } from '../../../../src/contracts/agent-context/write-bundle.js';
import type { Projection } from '../../../../src/contracts/projection/project-session.js';
import type { ContextRecord } from '../../../../src/objects/context-record.js';
import { hashText } from '../../../../src/objects/hashes.js';
import { happenings, projectionOf } from '../../../support/any-session.js';

const bundleOf = (
  projection: Projection,
  redactions: readonly ContextRecord<'event'>[] = [],
  { records = [], redactedTexts = () => [] }: Partial<Pick<BundleSource, 'records' | 'redactedTexts'>> = {},
) =>
  makeBundle({
    projection,
    scope: 'session',
    steps: [],
    records: [...redactions, ...records],
    delivered: [],
    redactions,
    redactedTexts,
  });

const of = ({ session }: Projection) => ({ owner: { session }, turn: 1, seq: 1, at: 1, basis: null }) as const;
const NONSENSE = { redaction_state: 'nonsense', redaction_method: 7 };
const redactionOf = (
  projection: Projection,
  subject: string,
  data: ContextRecord<'event'>['body']['data'] = NONSENSE,
): ContextRecord<'event'> => ({
  ...of(projection),
  kind: 'event',
  body: { type: 'context.redaction.applied', subject, data },
});
const partsWith = (bundle: Bundle, text: string): readonly object[] =>
  PART_NAMES.flatMap((part) => objectsOf(bundle, part)).filter((one) => JSON.stringify(one).includes(text));

describe('bundles of any session', () => {
  test('are valid, closed, deterministic and free of statuses; all entries but approvals are items', () => {
    fc.assert(
      fc.property(happenings, (all) => {
        const projection = projectionOf(all);
        const bundle = bundleOf(projection);
        expect(bundleFindings(bundle)).toEqual([]);
        expect([...bundleFiles(bundleOf(projectionOf(all)))]).toEqual([...bundleFiles(bundle)]);
        const entries = projection.entries.filter(({ kind }) => kind !== 'approval').map(({ id }) => id as string);
        expect(
          bundle.items.map(({ item_id }) => item_id).filter((id) => /^[a-z]\w*$/u.test(id) && id.length < 40),
        ).toEqual(entries);
        expect(bundle.injections).toEqual([]);
      }),
      { numRuns: 25 },
    );
  });

  test('mark an output without its middle as head and tail, with the digest of the whole', () => {
    const projection = projectionOf([
      { kind: 'calls', text: '', calls: [{ output: 'head and tail of it', args: {}, when: 'now' }] },
    ]);
    const whole = hashText('the whole of it');
    const entries = projection.entries.map((entry) => (entry.kind === 'result' ? { ...entry, whole } : entry));
    const { items, sources } = bundleOf({ ...projection, entries });
    const item = items.find(({ context_kind }) => context_kind === 'tool_result');
    expect(item?.metadata).toMatchObject({ kept: 'head and tail' });
    expect(sources.find(({ source_id }) => source_id === item?.source_refs?.[0])?.digest).toBe(`sha256:${whole}`);
    expect(JSON.stringify(bundleOf(projection).items)).not.toContain('"kept"');
  });

  test('contain nothing redacted, however badly the rules are written', () => {
    const secret = 'the password is tangerine-9';
    const projection = projectionOf([
      { kind: 'user', text: secret },
      { kind: 'said', text: `You wrote: ${secret}` },
      { kind: 'calls', text: '', calls: [{ output: secret, args: { note: `${secret}!`, [secret]: 1 }, when: 'now' }] },
    ]);
    const first = projection.entries.find(({ kind }) => kind === 'user')?.id ?? '';
    const bundle = bundleOf(projection, [redactionOf(projection, first)]);
    expect(bundleFindings(bundle)).toEqual([]);
    expect(partsWith(bundle, 'tangerine')).toEqual([]);
    expect(bundle.items.find(({ item_id }) => item_id === first)).toMatchObject({
      content_mode: 'opaque',
      redaction_state: 'unknown',
    });
    expect(JSON.stringify(bundleOf(projection))).toContain('tangerine');
  });

  test('contain nothing redacted of a memory, also where JSON would escape it', () => {
    const secret = 'the "pass"\nis C:\\tangerine';
    const projection = projectionOf([{ kind: 'user', text: secret }]);
    const first = projection.entries.find(({ kind }) => kind === 'user')?.id ?? '';
    const content = { key: 'login', value: { said: `${secret}!`, list: [secret] } };
    const memory: ContextRecord<'memory'> = {
      ...of(projection),
      owner: { agent: 'a' },
      kind: 'memory',
      body: { name: 'm', item: 'fact', content, tags: [], sensitivity: 'private', provenance: {} },
    };
    const bundle = bundleOf(projection, [redactionOf(projection, first)], { records: [memory] });
    const item = bundle.items.find(({ item_id }) => item_id === 'memory-m');
    expect(item).toMatchObject({
      redaction_state: 'masked',
      content: '{"key":"login","value":{"said":"[redacted]!","list":["[redacted]"]}}',
    });
    expect(partsWith(bundle, 'tangerine')).toEqual([]);
  });

  test('contain no text that a rule spells out, however short, and never mask a mask again', () => {
    const projection = projectionOf([
      { kind: 'user', text: 'It is hunter2, and the pin 42.' },
      {
        kind: 'calls',
        text: '',
        calls: [{ output: 'hunter2', args: { say: 'x hunter2 y', '42': 'pin' }, when: 'now' }],
      },
    ]);
    const first = projection.entries.find(({ kind }) => kind === 'user')?.id ?? '';
    const bundle = bundleOf(projection, [
      redactionOf(projection, first, { redaction_state: 'masked', exact: ['hunter2', '42', 'red'] }),
    ]);
    expect(bundleFindings(bundle)).toEqual([]);
    expect(partsWith(bundle, 'hunter2')).toEqual([]);
    expect(bundle.items.find(({ item_id }) => item_id === first)).toMatchObject({
      content: 'It is [redacted], and the pin [redacted].',
      redaction_state: 'masked',
    });
    expect(bundle.items.at(-2)?.content).toMatchObject({
      tool_calls: [{ arguments: { say: 'x [redacted] y', '[redacted]': 'pin' } }],
    });
  });

  test('mask short texts of an item only where they are a whole text', () => {
    const projection = projectionOf([
      { kind: 'user', text: 'yes' },
      { kind: 'said', text: 'yes' },
      { kind: 'said', text: 'yesterday' },
    ]);
    const first = projection.entries.find(({ kind }) => kind === 'user')?.id ?? '';
    const shown = bundleOf(projection, [redactionOf(projection, first)]).items.map(({ content }) => content);
    expect(shown.slice(-3)).toEqual([undefined, '[redacted]', 'yesterday']);
  });

  test('show only the replacement of a replaced message, never its calls', () => {
    const projection = projectionOf([
      { kind: 'user', text: 'Log in' },
      { kind: 'calls', text: 'I do', calls: [{ output: 'in', args: { password: 'tangerine-9' }, when: 'now' }] },
    ]);
    const said = projection.entries.find(({ kind }) => kind === 'assistant')?.id ?? '';
    const data = { redaction_state: 'summarized', replacement: 'It logs in.' };
    const bundle = bundleOf(projection, [redactionOf(projection, said, data)]);
    expect(bundleFindings(bundle)).toEqual([]);
    expect(bundle.items.find(({ item_id }) => item_id === said)).toMatchObject({
      content: 'It logs in.',
      mime_type: 'text/plain',
    });
    expect(partsWith(bundle, 'tangerine')).toEqual([]);
  });

  test('contain nothing redacted in our own records, nor texts that only other moments hold', () => {
    const projection = projectionOf([
      { kind: 'user', text: 'tangerine-9' },
      { kind: 'said', text: 'and mandarin-7 too' },
    ]);
    const first = projection.entries.find(({ kind }) => kind === 'user')?.id ?? '';
    const record = of(projection);
    const [tail, say] = [{ nested: { 'of tangerine-9': ['tangerine-9'] } }, 'about tangerine-9'];
    const records: BundleSource['records'] = [
      {
        ...record,
        kind: 'selection',
        body: {
          ...{
            surface: say,
            counter: say,
            query: say,
            intent: say,
            rationale: say,
            policy: `${'x'.repeat(388)} tangerine-9`,
          },
          ...{ candidates: [], selected: [], omitted: [{ item: 's1', reason: say }], extra: tail },
        },
      },
      {
        ...record,
        kind: 'budget',
        body: {
          ...{ target: 'model', counter: 'words', max: 1, actual: 1, overflow: say, extra: tail },
          segments: [{ name: say, actual: 1 }],
        },
      },
      {
        ...record,
        kind: 'injection',
        body: {
          target: 'model',
          point: say,
          visibility: [],
          sha256: 'c'.repeat(64),
          items: [],
          assembly: say,
          extra: tail,
        },
      },
      {
        ...record,
        kind: 'compaction',
        body: {
          ...{
            counter: 'words',
            trigger: say,
            method: say,
            before: 2,
            after: 1,
            lines: [],
            gone: [],
            cut: [],
            extra: tail,
          },
        },
      },
      {
        ...record,
        kind: 'missing',
        body: {
          question: say,
          severity: 'low',
          status: 'requested',
          candidates: [],
          blocked: [],
          requestedFrom: say,
          extra: tail,
        },
      },
    ];
    const elsewhere = (name: string): readonly string[] => (name === first ? ['mandarin-7'] : []);
    const bundle = bundleOf(projection, [redactionOf(projection, first)], { records, redactedTexts: elsewhere });
    expect(bundleFindings(bundle)).toEqual([]);
    expect(partsWith(bundle, 'tangerine')).toEqual([]);
    expect(partsWith(bundle, 'mandarin')).toEqual([]);
    expect(bundle.selections.at(-1)).toMatchObject({
      query: 'about [redacted]',
      metadata: { turn_id: 'turn:1', step_id: 'step:1' },
    });
    expect(partsWith(bundleOf(projection, [], { records }), 'tangerine').length).toBeGreaterThan(6);
  });

  test('are refused by name with an open reference, a duplicate name, a field of another shape or a status', () => {
    const bundle = bundleOf(projectionOf([{ kind: 'user', text: 'Hello' }]));
    const [item] = bundle.items;
    if (item === undefined) throw new Error('no item');
    const said = (broken: Partial<typeof bundle>): readonly string[] => bundleFindings({ ...bundle, ...broken });
    expect(said({ items: bundle.items.slice(1) })[0]).toContain('names "system", which is not among the items');
    expect(said({ items: [item, ...bundle.items] })).toEqual(['two items have the name "system"']);
    const wrong = { ...item, visibility: [] as unknown as typeof item.visibility };
    expect(said({ items: [wrong, ...bundle.items.slice(1)] })[0]).toContain(
      'context_item system is not valid at visibility',
    );
    expect(() => checkBundle({ ...bundle, items: [] })).toThrow(expect.objectContaining({ code: 'invalid-bundle' }));
  });

  test('drop a status in foreign fields and keep quoted ones', () => {
    const foreign = {
      Status: 'x',
      data: { exit_code: 1, kept: 'yes', list: ['done', 'more'] },
      title: 'done',
      how: 'Approved',
    };
    expect(withoutStatus(foreign)).toEqual({ data: { kept: 'yes', list: ['more'] }, title: 'done' });
    expect(statusFindings(foreign)).toEqual(['Status', 'data.exit_code', 'data.list.0', 'how']);
    expect(statusFindings({ status: 'open' }, ['status'])).toEqual([]);
  });

  test('are written for their user alone, and remove the rest of a killed export', async () => {
    const root = await mkdtemp(join(tmpdir(), 'palimpsest-bundle-'));
    try {
      const bundle = bundleOf(projectionOf([{ kind: 'user', text: 'Hello' }]));
      const parent = join(root, 'deep');
      await writeBundle(bundle, join(parent, 'one'));
      for (const folder of [parent, join(parent, 'one')]) expect((await stat(folder)).mode & 0o777).toBe(0o700);
      // No process id has ten digits.
      const left = `${9_999_999_999}-${'0'.repeat(16)}-${'a'.repeat(16)}.draft`;
      await mkdir(join(parent, `.two.${left}`));
      await writeFile(join(parent, `.two.${left}`, 'context_item.jsonl'), 'half');
      await mkdir(join(parent, `.other.${left}`));
      await writeFile(join(parent, '.two.json'), 'mine');
      expect(await writeBundle(bundle, join(parent, 'two'))).toMatchObject({ isNew: true });
      expect((await readdir(parent)).sort()).toEqual(['.two.json', `.other.${left}`, 'one', 'two'].sort());
    } finally {
      await rm(root, { recursive: true, force: true });
    }
  });
});
