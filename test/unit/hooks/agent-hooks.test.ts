import { describe, expect, test } from '@jest/globals';
import { type HookEvent, hookAnswer, readHookEvent } from '../../../src/hooks/agent-hooks.js';

const SESSION = '0b8f4a52-8f2b-4b52-9d0e-6a4c3c1f7e10';
const BASE = { session_id: SESSION, transcript_path: '/home/ann/t.jsonl', cwd: '/home/ann/shop' };

const read = (agent: string, event: object): HookEvent | undefined =>
  readHookEvent(agent, JSON.stringify({ ...BASE, ...event }));

describe('the event of a hook', () => {
  test.each([
    ['claude-code', { hook_event_name: 'SessionStart', source: 'startup' }, 'session-start'],
    ['claude-code', { hook_event_name: 'SessionStart', source: 'compact' }, 'after-compaction'],
    ['claude-code', { hook_event_name: 'UserPromptSubmit', prompt: 'go on' }, 'prompt'],
    ['claude-code', { hook_event_name: 'PreCompact', trigger: 'auto' }, 'before-compaction'],
    ['claude-code', { hook_event_name: 'SessionEnd', reason: 'clear' }, 'session-end'],
    ['codex', { hook_event_name: 'SessionStart', source: 'compact', model: 'm' }, 'after-compaction'],
    ['codex', { hook_event_name: 'Stop', turn_id: '1' }, 'stop'],
    ['gemini-cli', { hook_event_name: 'BeforeAgent', prompt: 'go on' }, 'prompt'],
    ['gemini-cli', { hook_event_name: 'PreCompress', trigger: 'auto' }, 'before-compaction'],
    ['gemini-cli', { hook_event_name: 'AfterAgent', prompt: 'go on' }, 'stop'],
  ])('of %s has the same moments for all agents: %j', (agent, event, moment) => {
    expect(read(agent, event)).toEqual({
      agent,
      moment,
      name: event.hook_event_name,
      native: SESSION,
      subagent: undefined,
      transcript: '/home/ann/t.jsonl',
      cwd: '/home/ann/shop',
      call: undefined,
      failed: false,
      shown: undefined,
    });
  });

  test('has only ids and paths of limited length, and only absolute paths', () => {
    const stop = { hook_event_name: 'Stop' };
    expect(read('claude-code', { ...stop, session_id: 'a'.repeat(401) })).toBeUndefined();
    const long = `/${'a'.repeat(5_000)}`;
    for (const path of [long, 'gateway/x.log', '../t.jsonl'])
      expect(read('claude-code', { ...stop, transcript_path: path, cwd: path })).toMatchObject({
        transcript: undefined,
        cwd: undefined,
      });
    expect(read('claude-code', { ...stop, agent_id: long })?.subagent).toBeUndefined();
  });

  test('names the call before and after a tool, and the sub-agent that makes it', () => {
    const call = { tool_name: 'Edit', tool_input: { file_path: 'a.ts' }, tool_use_id: 'toolu_1' };
    expect(read('claude-code', { hook_event_name: 'PreToolUse', ...call, agent_id: 'a1' })).toMatchObject({
      moment: 'before-tool',
      subagent: 'a1',
      call: { tool: 'Edit', args: { file_path: 'a.ts' }, id: 'toolu_1' },
    });
    expect(
      read('gemini-cli', { hook_event_name: 'AfterTool', tool_name: 'replace', tool_input: { file_path: 'a.ts' } }),
    ).toMatchObject({ moment: 'after-tool', call: { tool: 'replace', id: undefined } });
  });

  test('takes the text of a tool that has no named arguments', () => {
    const event = { hook_event_name: 'PreToolUse', tool_name: 'apply_patch', tool_input: '*** Begin Patch' };
    expect(read('codex', event)?.call?.args).toEqual({ input: '*** Begin Patch' });
  });

  test.each([
    ['claude-code', { hook_event_name: 'PostToolUseFailure', error: 'no such file' }],
    ['gemini-cli', { hook_event_name: 'AfterTool', tool_response: { llmContent: 'x', error: { message: 'no' } } }],
    ['codex', { hook_event_name: 'PostToolUse', tool_response: 'apply_patch verification failed: no such line' }],
  ])('says that a call of %s failed: %j', (agent, event) => {
    expect(read(agent, { tool_name: 'Edit', tool_input: {}, ...event })?.failed).toBe(true);
    expect(read(agent, { tool_name: 'Edit', tool_input: {}, ...event, tool_response: 'ok' })?.failed).toBe(
      event.hook_event_name === 'PostToolUseFailure',
    );
  });

  test.each([
    ['claude-code', { stdout: 'a\n', stderr: '' }, 'a\n'],
    ['codex', 'a\n', 'a\n'],
    ['gemini-cli', { llmContent: 'a\n' }, 'a\n'],
    ['claude-code', { type: 'text', file: { content: 'a' } }, undefined],
  ])('of %s has the text that the call showed: %j', (agent, result, shown) => {
    const name = agent === 'gemini-cli' ? 'AfterTool' : 'PostToolUse';
    expect(read(agent, { hook_event_name: name, tool_name: 'x', tool_input: {}, tool_response: result })?.shown).toBe(
      shown,
    );
  });

  test.each([
    ['an unknown agent', 'cursor', JSON.stringify({ ...BASE, hook_event_name: 'Stop' })],
    ['an unknown event', 'codex', JSON.stringify({ ...BASE, hook_event_name: 'Notification' })],
    ['a name of every object', 'codex', JSON.stringify({ ...BASE, hook_event_name: 'constructor' })],
    ['a session without an id', 'codex', JSON.stringify({ hook_event_name: 'Stop' })],
    ['a tool without a name', 'codex', JSON.stringify({ ...BASE, hook_event_name: 'PreToolUse' })],
    ['a list', 'codex', '[]'],
    ['half an object', 'codex', '{"session_id":'],
    ['nothing', 'codex', ''],
  ])('is ignored for %s', (_what, agent, body) => {
    expect(readHookEvent(agent, body)).toBeUndefined();
  });
});

describe('the answer of a hook', () => {
  const beforeTool = (agent: string, name: string): HookEvent =>
    read(agent, { hook_event_name: name, tool_name: 'Edit', tool_input: {} }) as HookEvent;

  test('has a note beside the call', () => {
    expect(JSON.parse(hookAnswer(beforeTool('claude-code', 'PreToolUse'), { text: 'look', refuses: false }))).toEqual({
      hookSpecificOutput: { hookEventName: 'PreToolUse', additionalContext: 'look' },
    });
  });

  test('refuses a call in each agent’s own form', () => {
    expect(JSON.parse(hookAnswer(beforeTool('codex', 'PreToolUse'), { text: 'look', refuses: true }))).toEqual({
      hookSpecificOutput: {
        hookEventName: 'PreToolUse',
        permissionDecision: 'deny',
        permissionDecisionReason: 'look',
      },
    });
    expect(JSON.parse(hookAnswer(beforeTool('gemini-cli', 'BeforeTool'), { text: 'look', refuses: true }))).toEqual({
      decision: 'deny',
      reason: 'look',
    });
  });

  test('never refuses anything but a call', () => {
    const event = read('codex', { hook_event_name: 'SessionStart', source: 'compact' }) as HookEvent;
    expect(hookAnswer(event, { text: 'look', refuses: true })).not.toContain('deny');
  });
});
