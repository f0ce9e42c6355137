import { randomUUID } from 'node:crypto';
import { mkdir, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { BUNDLE_PARTS, type Bundle, objectsOf, PART_NAMES } from '../../../src/contracts/agent-context/bundle-parts.js';
import { bundleFindings } from '../../../src/contracts/agent-context/check-bundle.js';
import { bundleAt } from '../../../src/contracts/agent-context/export-bundle.js';
import { askedMoment } from '../../../src/history/rebuild/moment.js';
import { Timeline } from '../../../src/history/rebuild/timeline.js';
import type { ContextRecord, RecordBody, RecordKind } from '../../../src/objects/context-record.js';
import { type SessionId, sessionId } from '../../../src/objects/ids.js';
import { publishedValidators } from '../../support/agent-context-schemas.js';
import { askHere } from '../../support/ask-here.js';
import { wholeRead } from '../../support/context.js';
import { suiteData } from '../../support/mcp-clients.js';
import { HOSTILE, type ReviewedSessions, reviewedSessions } from '../../support/reviewed-sessions.js';

const SHA = 'c'.repeat(64);
const SECRET = 'token-4711-very-secret';
const FILE_SECRET = 'the key of the file';

describe('a session as a bundle of Agent Context', () => {
  const name = `bundled-${randomUUID()}`;
  const first = sessionId(`${name}-first`);
  const folder = (): string => join(sessions.root, 'exported');
  let sessions: ReviewedSessions;
  let secret: SessionId;

  const at = async (moment?: string, session = first): Promise<Bundle> =>
    bundleAt(await Timeline.open(await sessions.client.delivered()), session, { when: askedMoment({ at: moment }) });
  const put = async <Kind extends RecordKind>(
    kind: Kind,
    body: RecordBody<Kind>,
    where = { turn: 2, seq: 7 },
    session = first,
  ) => {
    const store = await sessions.client.delivered();
    const record = { kind, owner: { session }, ...where, at: Date.now(), basis: null, body };
    await store.putRecords([record as unknown as ContextRecord]);
  };

  beforeAll(async () => {
    sessions = await reviewedSessions(name);
    await put('selection', {
      surface: 'knowledge',
      candidates: ['s1', 's2', 's3', 's4', 's5'],
      selected: ['s1', 's2', 's3'],
      omitted: [
        { item: 's4', reason: 'budget_limit' },
        { item: 's5', reason: 'the_wrong_language' },
      ],
      extra: {
        task_id: 'task-1',
        run_id: 'run-1',
        attempt_id: 'attempt-1',
        status: 'completed',
        nested: { outcome: 'ok', kept: 1 },
      },
    });
    await put('selection', {
      surface: 'knowledge',
      candidates: ['s1', 's2', 's3', 's4', 's5'],
      selected: ['s4'],
      omitted: [{ item: 's1', reason: 'stale' }],
      extra: { task_id: 'task-1', run_id: 'run-1', attempt_id: 'attempt-2' },
    });
    await put('budget', {
      target: 'model',
      counter: 'words',
      max: 100,
      actual: 90,
      reserved: 10,
      maxItems: 3,
      actualItems: 3,
      overflow: 'truncate_tail',
      segments: [{ name: 'knowledge', actual: 90, items: ['s1', 's2', 's3'] }],
      truncated: [{ item: 's4', reason: 'budget_limit' }],
    });
    await put('injection', {
      target: 'tool:browser',
      point: 'tool_visible_resource',
      visibility: ['tool'],
      sha256: SHA,
      items: ['page-7'],
      native: 'mcp://page/7',
    });
    await put('compaction', {
      counter: 'words',
      trigger: 'token_pressure',
      method: 'structured_digest',
      before: 900,
      after: 300,
      lines: ['r2'],
      gone: ['m1'],
      cut: [],
      summary: { text: 'They looked at a.ts', by: 'digest', identifiers: ['a.ts', 'b.ts'], lost: ['b.ts'] },
    });
    await put('missing', {
      question: 'Which branch\u0007 is it?',
      severity: 'blocking',
      status: 'requested',
      candidates: ['git://repository/branches'],
      blocked: ['merge'],
      requestedFrom: 'user',
    });
    await put('note', { name: 'c1', note: 'constraint', text: 'Never push' });
    await put('event', {
      type: 'context.surface.updated',
      subject: 'r2',
      data: { turn_status: 'completed', why: 'more files' },
    });
    await put('event', { type: 'context:compaction', data: { level: 3 } });
    await put('approval', { approval: 'ask-1', state: 'approved', text: 'rm -r build', tool: 'bash' });

    const session = await sessions.client.openSession({ id: `${name}-secret` });
    secret = session.id;
    await session.reportMessage({ role: 'user', text: 'What is the token?' });
    const call = {
      tool: 'bash',
      args: { command: 'cat token' },
      status: 'ok',
      content: SECRET,
      answer: () => SECRET,
    } as const;
    await (await session.recordCall(call)).applied;
    await session.reportMessage({ role: 'assistant', text: `It is ${SECRET}.` });
    for (const content of [FILE_SECRET, `${FILE_SECRET} (2)`]) {
      await writeFile(join(sessions.root, 'key.txt'), content);
      const readings = [await wholeRead(sessions.client, 'key.txt')];
      await (
        await session.recordCall({ tool: 'read', args: {}, status: 'ok', content, answer: () => content, readings })
      ).applied;
    }
    const { id: keyFile } = await sessions.client.files.locate('key.txt');
    const plan = await session.planVerb('deactivate', [keyFile]);
    await (
      await session.recordCall({ tool: 'deactivate', args: {}, status: 'ok', content: '', answer: () => '', plan })
    ).applied;
    await session.assemble({ deliver: 'library' });
    await sessions.client.delivered();
    await put(
      'event',
      { type: 'context.redaction.applied', subject: keyFile, data: { redaction_state: 'removed' } },
      undefined,
      secret,
    );
    await put(
      'compaction',
      {
        counter: 'words',
        trigger: 'privacy',
        method: 'something_else',
        before: 9,
        after: 3,
        lines: [],
        gone: ['r2'],
        cut: [],
        summary: {
          text: 'The token begins with token-4711',
          by: 'model',
          identifiers: ['token-4711'],
          lost: ['token-4711'],
        },
      },
      { turn: 1, seq: 3 },
      secret,
    );
    await put(
      'event',
      {
        type: 'context.redaction.applied',
        subject: 'r2',
        data: {
          redaction_state: 'removed',
          redaction_method: 'whole item',
          reason: 'a credential',
          policy_refs: ['policy:secrets'],
          redacted_by: 'operator',
        },
      },
      { turn: 1, seq: 3 },
      secret,
    );
  });
  afterAll(() => sessions?.close());

  test('is valid under the published schemas and ours, and every reference resolves', async () => {
    const validators = publishedValidators();
    for (const bundle of [
      await at(),
      await at('turn:2'),
      await at('turn:1'),
      await at('step:2'),
      await at('now', secret),
    ]) {
      expect(bundleFindings(bundle)).toEqual([]);
      for (const part of PART_NAMES)
        for (const one of objectsOf(bundle, part)) {
          const validate = validators.get(BUNDLE_PARTS[part].shape);
          expect([part, validate?.(one) ?? true, validate?.errors ?? null]).toEqual([part, true, null]);
        }
    }
  });

  test('scenario turn snapshot: envelope, surface, selected items, budget, assembly and injection', async () => {
    const { envelope, surfaces, selections, budgets, assemblies, injections, items } = await at('turn:2');
    expect(envelope).toMatchObject({ scope: 'turn', lifecycle: 'injected', surface_refs: ['surface-turn-2'] });
    expect(surfaces[0]?.available_item_refs).toEqual(items.map(({ item_id }) => item_id));
    const [sets] = selections;
    expect(sets?.selected_item_refs).toEqual(expect.arrayContaining(['system', 'm1', 'm3', sessions.file]));
    expect(budgets[0]?.actual_tokens).toBeGreaterThan(0);
    const delivered = assemblies.filter(({ assembly_id }) => assembly_id.includes(':'));
    expect(delivered).toHaveLength(1);
    expect(injections.filter(({ target }) => target === 'model').map(({ assembly_id }) => assembly_id)).toEqual([
      delivered[0]?.assembly_id,
    ]);
    const kinds = new Map(items.map(({ item_id, context_kind }) => [item_id, context_kind]));
    expect(['system', 'm1', 'm3', 'r2', sessions.file].map((id) => kinds.get(id))).toEqual([
      'system_prompt',
      'session_history',
      'user_message',
      'tool_result',
      'file_excerpt',
    ]);
  });

  test('scenario omitted context, ACTX-AR-SEL-001, ACTX-AR-BUDGET-001: omissions with reason, and budget', async () => {
    const { selections, budgets, windows } = await at();
    const recorded = selections.find(({ metadata }) => metadata?.attempt_id === 'attempt-1');
    expect(recorded?.selected_item_refs).toEqual(['s1', 's2', 's3']);
    expect(recorded?.omitted_item_refs).toEqual([
      { item_ref: 's4', reason: 'budget_limit' },
      { item_ref: 's5', reason: 'custom', metadata: { reason: 'the_wrong_language' } },
    ]);
    const budget = budgets.find(({ max_tokens }) => max_tokens === 100);
    expect(budget).toMatchObject({
      actual_tokens: 90,
      reserved_tokens: 10,
      max_items: 3,
      actual_items: 3,
      overflow_strategy: 'truncate_tail',
      truncation_records: [{ item_ref: 's4', reason: 'budget_limit' }],
      metadata: { counter: 'words' },
    });
    const window = windows.find(({ budget_ref }) => budget_ref === budget?.budget_id);
    expect(window?.segments).toMatchObject([
      { role: 'knowledge', actual_tokens: 90, item_refs: ['s1', 's2', 's3'], order: 0 },
    ]);
    expect(budget?.window_segments).toEqual([{ kind: 'window_segment', id: window?.segments[0]?.segment_id }]);
  });

  test('scenario compaction, ACTX-AR-COMPACT-001: its effects and renewal; a summary is never an answer', async () => {
    const { compactions, summaries, items } = await at();
    const [compaction] = compactions;
    expect(compaction).toMatchObject({
      source_item_refs: ['m1', 'r2'],
      method: 'structured_digest',
      trigger: 'token_pressure',
      coverage: { replaced: ['m1'], shortened: ['r2'], before_tokens: 900, after_tokens: 300 },
      validation: { by: 'digest', identifiers: 2, identifiers_not_kept: ['b.ts'] },
      summary_ref: summaries[0]?.summary_id,
      metadata: { counter: 'words' },
    });
    expect(compaction?.loss_notes.length).toBeGreaterThan(0);
    expect(compaction?.replacement_policy).toContain('stays in the store');
    expect(summaries[0]).toMatchObject({
      content: 'They looked at a.ts',
      source_item_refs: ['m1'],
      coverage: { replaced: ['m1'] },
    });
    const item = items.find(({ item_id }) => item_id === summaries[0]?.item_ref);
    expect(item).toMatchObject({ context_kind: 'thread_summary', content_mode: 'summary' });
    expect(items.find(({ item_id }) => item_id === 'm1')).toMatchObject({
      content_mode: 'inline',
      content: 'Look at a.ts',
    });
  });

  test('scenario tool-visible context: an injection for a tool, apart from what the model was given', async () => {
    const { injections, assemblies } = await at('turn:2');
    const tool = injections.find(({ target }) => target === 'tool:browser');
    expect(tool).toMatchObject({
      injection_point: 'tool_visible_resource',
      visibility: ['tool'],
      native_id: 'mcp://page/7',
      hash: `sha256:${SHA}`,
    });
    expect(assemblies.find(({ assembly_id }) => assembly_id === tool?.assembly_id)?.source_item_refs).toEqual([
      'page-7',
    ]);
    const shown = assemblies
      .filter(({ target }) => target === 'model')
      .flatMap(({ source_item_refs }) => source_item_refs);
    expect(shown).not.toContain('page-7');
  });

  test('scenario missing context, ACTX-AR-MISSING-001: the asker, the asked, the block, and a user line', async () => {
    const { missing, events } = await at();
    expect(missing[0]).toMatchObject({
      severity: 'blocking',
      status: 'requested',
      requested_from: 'user',
      blocked_actions: ['merge'],
      candidate_sources: [{ uri: 'git://repository/branches' }],
      metadata: { owner: first, safe_summary: 'Which branch is it?' },
    });
    const types = events
      .filter(({ subject }) => subject === missing[0]?.missing_id)
      .map(({ event_type }) => event_type);
    expect(types).toEqual(['context.missing.detected', 'context.missing.requested']);
  });

  test('scenario redaction, ACTX-AR-POLICY-001: redacted text is nowhere; method, reason, policies stay', async () => {
    for (const moment of ['now', 'turn:1', 'step:4', 'step:2']) {
      const bundle = await at(moment, secret);
      expect(JSON.stringify(bundle)).not.toContain(SECRET);
      // Results that repeat a file which is inactive at the moment or had another text then.
      expect(JSON.stringify(bundle)).not.toContain(FILE_SECRET);
      const item = bundle.items.find(({ item_id }) => item_id === 'r2');
      expect(item).toMatchObject({
        content_mode: 'opaque',
        redaction_state: 'removed',
        policy_refs: ['policy:secrets'],
        metadata: { redaction_method: 'whole item', redaction_reason: 'a credential', redacted_by: 'operator' },
      });
      expect(item).not.toHaveProperty('content');
    }
    const { items, assemblies, summaries, compactions, events, envelope } = await at('now', secret);
    expect(items.find(({ item_id }) => item_id === 'm3')).toMatchObject({
      content: { text: 'It is [redacted].' },
      redaction_state: 'masked',
    });
    const blocks = assemblies
      .flatMap(({ ordered_blocks }) => ordered_blocks)
      .filter(({ item_refs }) => item_refs.includes('r2'));
    expect(blocks.length).toBeGreaterThan(0);
    expect(new Set(blocks.map(({ redaction_state }) => redaction_state))).toEqual(new Set(['removed']));
    expect(JSON.stringify([summaries, compactions])).not.toContain('token-4711');
    expect(summaries[0]).not.toHaveProperty('content');
    expect(envelope.policy_refs).toContain('policy:secrets');
    expect(events.find(({ event_type }) => event_type === 'context.redaction.applied')).toMatchObject({
      subject: 'r2',
    });
  });

  test('ACTX-AR-ID-001, ACTX-AR-ID-002: names session, thread, turn and attempt; attempts stay apart', async () => {
    const { envelope, selections, events } = await at('turn:2');
    expect(envelope.runtime_refs).toEqual([
      { kind: 'session', id: first },
      { kind: 'thread', id: first },
      { kind: 'turn', id: 'turn:2' },
      { kind: 'step', id: 'step:7' },
    ]);
    const attempts = selections.filter(({ metadata }) => metadata?.task_id === 'task-1');
    expect(attempts.map(({ metadata }) => [metadata?.run_id, metadata?.attempt_id])).toEqual([
      ['run-1', 'attempt-1'],
      ['run-1', 'attempt-2'],
    ]);
    expect(new Set(attempts.map(({ selection_id }) => selection_id)).size).toBe(2);
    const of = events.filter(({ attempt_id }) => attempt_id !== undefined);
    expect(of.map(({ task_id, run_id, attempt_id, turn_id }) => [task_id, run_id, attempt_id, turn_id])).toEqual([
      ['task-1', 'run-1', 'attempt-1', 'turn:2'],
      ['task-1', 'run-1', 'attempt-2', 'turn:2'],
    ]);
    expect(
      events.find(({ subject, event_type }) => subject === 'r2' && event_type === 'context.item.added'),
    ).toMatchObject({
      tool_call_id: expect.any(String),
      turn_id: 'turn:1',
    });
  });

  test('ACTX-AR-ASM-001, ACTX-AR-EVID-001: an injection leads to its blocks, items, sources and record', async () => {
    const { envelope, assemblies, injections, items, sources } = await at('turn:2');
    const injection = injections.find(({ target }) => target === 'model');
    const assembly = assemblies.find(({ assembly_id }) => assembly_id === injection?.assembly_id);
    expect(assembly?.source_item_refs).toEqual(expect.arrayContaining(['system', 'm1', 'm3', 'r2', sessions.file]));
    const shown = items.filter(({ item_id }) => assembly?.source_item_refs.includes(item_id));
    const known = new Set(sources.map(({ source_id }) => source_id));
    expect(shown.every(({ source_refs }) => source_refs.length > 0 && source_refs.every((ref) => known.has(ref)))).toBe(
      true,
    );
    expect(assembly?.ordered_blocks.map(({ wrapper }) => wrapper)).toEqual(['system', 'pool', 'chat', 'active']);
    const [proof] = await (await (await sessions.client.delivered()).latest()).assemblies(first);
    expect(injection).toMatchObject({ hash: `sha256:${proof?.sha256}`, metadata: { delivery: 'library' } });
    expect(envelope.evidence_refs).toEqual([injection?.final_ref]);
  });

  test('a selection alone gives no injection: every injection has the record of a context', async () => {
    const { envelope, selections, assemblies, injections } = await at('turn:1');
    expect(selections[0]?.selected_item_refs.length).toBeGreaterThan(2);
    expect([assemblies, injections, envelope.lifecycle]).toEqual([[], [], 'selected']);
  });

  test('ACTX-AR-GOV-001: judges no turn, call or approval as good or bad, for any records and calls', async () => {
    const bundle = await at();
    const { items, selections, events, envelope } = bundle;
    expect(
      JSON.stringify({ ...bundle, missing: [], items: items.map(({ content: _content, ...item }) => item) }),
    ).not.toMatch(/"(?:status|state|outcome|turn_status)":|"(?:completed|approved|fail|ok)"/u);
    expect(selections.find(({ metadata }) => metadata?.attempt_id === 'attempt-1')?.metadata).toMatchObject({
      nested: { kept: 1 },
    });
    expect(events.find(({ event_type }) => event_type === 'context.surface.updated')?.data).toEqual({
      why: 'more files',
    });
    expect(envelope.policy_refs).toEqual(['approval:ask-1']);
    const [item] = bundle.items.filter(({ content }) => content === HOSTILE);
    const broken = {
      ...bundle,
      items: bundle.items.map((one) =>
        one === item ? { ...one, metadata: { ...one.metadata, status: 'fail' } } : one,
      ),
    };
    expect(bundleFindings(broken)).toEqual([expect.stringContaining('states a runtime status at metadata.status')]);
  });

  test('reports a requested unknown file as missing context', async () => {
    const session = await sessions.client.openSession({ id: `${name}-unread` });
    await session.reportMessage({ role: 'user', text: 'Read it' });
    await writeFile(join(sessions.root, 'never.ts'), 'out of reach');
    const mentioned = [{ source: (await sessions.client.files.locate('never.ts')).source, mtimeMs: 1 }];
    const call = {
      tool: 'read',
      args: { path: 'never.ts' },
      status: 'fail',
      content: 'no such file',
      answer: () => 'no',
      mentions: mentioned,
    } as const;
    await (await session.recordCall(call)).applied;
    const { missing, items } = await at('now', session.id);
    expect(missing).toMatchObject([{ severity: 'medium', status: 'open', metadata: { requested_by: 'r2' } }]);
    expect(items.find(({ context_kind }) => context_kind === 'file_excerpt')).toMatchObject({
      content_mode: 'ref',
      freshness: 'unread',
    });
  });

  describe('on the command line', () => {
    const run = (...args: string[]) => askHere(['export', ...args, '--format', 'agent-context', '--data', suiteData()]);
    const contents = async (of: string): Promise<readonly (readonly [string, string])[]> =>
      Promise.all(
        (await readdir(of)).sort().map(async (file) => [file, await readFile(join(of, file), 'utf8')] as const),
      );

    test('writes all files at once; the same basis gives the same bytes, a second run changes nothing', async () => {
      const [one, two] = [join(folder(), 'deep', 'one'), join(folder(), 'two')];
      const { code, stdout, stderr } = await run(`${first}@turn:2`, one, '--json');
      expect([code, stderr]).toEqual([0, '']);
      expect(JSON.parse(stdout)).toMatchObject({ session: first, scope: 'turn', written: true, notes: [] });
      expect((await readdir(one)).sort()).toEqual(PART_NAMES.map((part) => BUNDLE_PARTS[part].file).sort());
      await mkdir(two, { recursive: true });
      expect(await run(`${first}@turn:2`, two)).toMatchObject({ code: 0, stdout: expect.stringContaining(two) });
      expect(await contents(two)).toEqual(await contents(one));
      const again = await run(`${first}@turn:2`, one);
      expect([again.code, again.stdout]).toEqual([0, expect.stringContaining('holds this bundle already')]);
      expect((await readdir(folder())).filter((entry) => entry.startsWith('.'))).toEqual([]);
    });

    test('gives the same bundle for an unchanged session, despite other writes', async () => {
      const to = join(folder(), 'unchanged');
      const before = await run(first, to, '--json');
      expect([before.code, before.stderr]).toEqual([0, '']);
      const other = await sessions.client.openSession({});
      await other.reportMessage({ role: 'user', text: 'Another session' });
      await sessions.client.closeSession(other);
      await sessions.client.delivered();
      const again = await run(first, to, '--json');
      expect([again.code, again.stderr]).toEqual([0, '']);
      const { context_id } = JSON.parse(before.stdout);
      expect(JSON.parse(again.stdout)).toMatchObject({ context_id, written: false });
    });

    test('refuses an occupied folder, an unknown session or moment, and changes nothing', async () => {
      const root = join(folder(), 'refused');
      await mkdir(root, { recursive: true });
      const path = (last: string): string => join(root, last);
      await mkdir(path('foreign'));
      await writeFile(path('foreign/notes.txt'), 'mine');
      await writeFile(path('file'), 'a file');
      await mkdir(path('real'));
      await symlink(path('real'), path('link'));
      expect((await run(`${first}@turn:1`, path('other'))).code).toBe(0);
      const before = await contents(path('other'));
      const refused = async (session: string, to: string) => {
        const { code, stderr } = await run(session, path(to));
        expect(code).not.toBe(0);
        return stderr;
      };
      expect(await refused(first, 'foreign')).toContain('holds "notes.txt", which is not part of a bundle');
      expect(await refused(first, 'other')).toContain('holds another bundle, and a bundle is never overwritten');
      expect(await refused(first, 'file')).toContain('is not a folder');
      expect(await refused(first, 'file/below')).toMatch(/is not a folder|ENOTDIR/u);
      expect(await refused(first, 'link')).toContain('is a symbolic link');
      expect(await refused('nobody-at-all', 'new')).toContain('there is no session "nobody-at-all"');
      expect(await refused(`${first}@turn:99`, 'new')).toContain('has no turn 99');
      expect((await readdir(root)).sort()).toEqual(['file', 'foreign', 'link', 'other', 'real']);
      expect(await contents(path('other'))).toEqual(before);
      // A link in place of a file makes it another bundle, even if the text is equal.
      const [file, text] = before[0] ?? ['', ''];
      await writeFile(path('elsewhere'), text);
      await rm(path(`other/${file}`));
      await symlink(path('elsewhere'), path(`other/${file}`));
      expect(await refused(`${first}@turn:1`, 'other')).toContain('holds another bundle');
    });
  });
});
