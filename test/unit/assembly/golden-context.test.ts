import { describe, expect, test } from '@jest/globals';
import { countTokens } from 'gpt-tokenizer/encoding/o200k_base';
import { assemble } from '../../../src/assembly/assemble.js';
import { type ActiveObject, layoutOf } from '../../../src/assembly/layout.js';
import type { ObjectMetadata } from '../../../src/assembly/metadata.js';
import { renderMessages } from '../../../src/assembly/render-messages.js';
import { hashText } from '../../../src/objects/hashes.js';
import { canonicalPath, chatObjectId, filesystemId, objectId, sessionId } from '../../../src/objects/ids.js';
import type { ObjectVersion } from '../../../src/objects/seal.js';
import { filesystemSource } from '../../../src/objects/source.js';
import { chatVersion, fileStub, indexedFile, sessionVersion, toolcallVersion } from '../../../src/objects/versions.js';
import { planCall, planMessage } from '../../../src/session/plan-step.js';
import { applyStep, emptySession, type SessionState } from '../../../src/session/session-state.js';
import { DEFAULT_POLICY } from '../../../src/session/step-policy.js';

const SID = sessionId('s1');
const sourceOf = (path: string) => filesystemSource(filesystemId('fs1'), canonicalPath(path));
const a = indexedFile(sourceOf('/a.ts'), 'const x = 1;', hashText('const x = 1;'));
const b = fileStub(sourceOf('/b.ts'));
const call = toolcallVersion({
  id: objectId('call_1'),
  tool: 'read',
  args: { path: 'a.ts' },
  status: 'ok',
  chatRef: chatObjectId(SID),
  fileRefs: [a['xt/id']],
  content: 'const x = 1;',
});

function story(): SessionState {
  let state = emptySession(SID);
  const message = (role: string, text: string) => {
    state = applyStep(state, planMessage(state, { message: { role, text }, at: state.lastAt + 1 }, DEFAULT_POLICY));
  };
  message('user', 'read a.ts');
  message('assistant', 'Reading it.');
  const plan = { call: call['xt/id'], at: 100, activateFiles: [a['xt/id']], index: [a['xt/id'], b['xt/id']] };
  state = applyStep(state, planCall(state, plan, DEFAULT_POLICY));
  message('assistant', 'Done.');
  return state;
}

function fileMetadata(file: ObjectVersion<'file'>): ObjectMetadata {
  const {
    'xt/id': id,
    file_type: fileType,
    char_count: charCount,
    file_hash: fileHash,
    content_hash: contentHash,
  } = file;
  return {
    type: 'file',
    id,
    displayPath: file.source?.path ?? '',
    fileType,
    charCount,
    state: fileHash === null ? 'stub' : 'indexed',
    fileHash,
    contentHash,
  };
}

const callMetadata: ObjectMetadata = {
  type: 'toolcall',
  id: call['xt/id'],
  tool: call.tool,
  status: call.status,
  contentHash: call.content_hash,
  charCount: 12,
  fileRefs: call.file_refs ?? [],
  wholeRead: true,
};

const GOLDEN = `You are a coding agent.

id=df286d6f3405ac80750af3171e32ba4d250254c2001afb07d849a4db12c35c78 type=file path=/a.ts file_type=ts char_count=12
id=38b2344838a560b7665f9dbff4fd674f269e396312c0c768382d3e2a7a930f5a type=file path=/b.ts file_type=ts [unread]
id=call_1 type=toolcall tool=read status=ok

user: read a.ts
assistant: Reading it.
toolcall_ref id=call_1 tool=read status=ok
assistant: Done.

ACTIVE_CONTENT id=df286d6f3405ac80750af3171e32ba4d250254c2001afb07d849a4db12c35c78
const x = 1;
ACTIVE_CONTENT id=call_1
file_ref id=df286d6f3405ac80750af3171e32ba4d250254c2001afb07d849a4db12c35c78`;

const versions = new Map([a, b, call].map((version) => [version['xt/id'], version]));
const metadata = new Map([fileMetadata(a), fileMetadata(b), callMetadata].map((entry) => [entry.id, entry]));

function inputOf(state: SessionState, options = { strict: false, shortIds: false }) {
  const known = (id: (typeof state.sets.index)[number]) => metadata.get(id) as ObjectMetadata;
  const active: ActiveObject[] = state.sets.active.map((id) => ({
    metadata: known(id),
    content: versions.get(id)?.content ?? null,
  }));
  return {
    systemPrompt: 'You are a coding agent.',
    pool: state.sets.index.map(known),
    turns: state.turns,
    active,
    options,
  };
}

describe('the golden context, from a fold of steps (decisions A8, E1)', () => {
  test('equals the text of the example, byte for byte', () => {
    const { text, record } = assemble(inputOf(story()));
    expect(text).toBe(GOLDEN);
    expect([record.sha256, record.chars]).toEqual([
      'f09c44eb3f73c21603be778cb09b305370fd69440faae7db692a632610713614',
      594,
    ]);
  });

  test('has the golden hashes for chat and session', () => {
    const state = story();
    expect(chatVersion(SID, state.turns).object_hash).toBe(
      '65efeafb78e76ae404e14e8c405fc61f4ae2367f589c94727f00bafeecf13fe6',
    );
    expect(sessionVersion(SID, state.sets).object_hash).toBe(
      '9b428fa4e20859a34f567a8bbbb0aff4335a6f9cc51d050e2411bc1da20ba405',
    );
  });

  test('shows the output of the read as well with --strict (decision E4)', () => {
    const { text } = assemble(inputOf(story(), { strict: true, shortIds: false }));
    expect(text).toBe(GOLDEN.replace(/file_ref id=.*$/, 'const x = 1;'));
  });

  test('shortens every id to its shortest unique prefix with short ids (decision D6)', () => {
    const { text } = assemble(inputOf(story(), { strict: false, shortIds: true }));
    expect(text).toBe(GOLDEN.replaceAll(a['xt/id'], 'df286d6f').replaceAll(b['xt/id'], '38b23448'));
  });

  test('takes 20 tokens for the pool line of a file with a short id instead of 50', () => {
    const tokens = (shortIds: boolean) =>
      countTokens(layoutOf(inputOf(story(), { strict: false, shortIds })).pool[0] ?? '');
    expect([tokens(false), tokens(true)]).toEqual([50, 20]);
  });

  test('records each section and the place of each body', () => {
    const { text, record, sections } = assemble(inputOf(story()));
    expect(record.sections).toEqual(
      sections.map(({ name, text: part }) => ({ name, chars: part.length, sha256: hashText(part) })),
    );
    expect(sections.map(({ name }) => name)).toEqual(['system', 'pool', 'chat', 'active']);
    for (const { offset, text: part } of sections) expect(text.slice(offset, offset + part.length)).toBe(part);
    expect(record.blocks.map(({ id, offset, chars }) => [id, text.slice(offset, offset + chars)])).toEqual([
      [a['xt/id'], 'const x = 1;'],
      ['call_1', `file_ref id=${a['xt/id']}`],
    ]);
  });

  test('splits into prompt, pool, chat and one part per block, as messages', () => {
    const { system, messages } = renderMessages(inputOf(story()));
    expect(system).toBe('You are a coding agent.');
    expect(messages.map(({ section, role, parts }) => [section, role, ...parts.map(({ text }) => text)])).toEqual([
      ['pool', 'user', GOLDEN.split('\n').slice(2, 5).join('\n')],
      ['chat', 'user', 'read a.ts'],
      ['chat', 'assistant', 'Reading it.', 'toolcall_ref id=call_1 tool=read status=ok'],
      ['chat', 'assistant', 'Done.'],
      [
        'active',
        'user',
        `ACTIVE_CONTENT id=${a['xt/id']}\nconst x = 1;`,
        `ACTIVE_CONTENT id=call_1\nfile_ref id=${a['xt/id']}`,
      ],
    ]);
  });
});
