import { describe, expect, test } from '@jest/globals';
import { readsOfCall, transcriptItems } from '../../../../src/lab/recordings/import-counts.js';
import { bytesSource, describeRecording, describeSource, linesOf, recordingPath } from '../../../support/recordings.js';

describe('reads of a call', () => {
  test.each([
    ['Read', { file_path: 'a' }, 1],
    ['Edit', { file_path: 'a' }, 0],
    ['str_replace_editor', { command: 'view', path: 'a' }, 1],
    ['str_replace_editor', { command: 'create', path: 'a' }, 0],
    ['Bash', { command: 'cat a.ts' }, 1],
    ['Bash', { command: 'cd src && cat a.ts b.ts && tail -5 c.ts' }, 2],
    ['Bash', { command: "sed -n '1,20p' a.ts | head -3" }, 1],
    ['Bash', { command: 'npm test | tail -20' }, 0],
    ['Bash', { command: "cat > a.ts <<'EOF'\ncat b.ts\nEOF\n" }, 0],
    ['Bash', { command: 'cat a.ts > b.ts' }, 0],
    ['Bash', { command: 'head -n 5' }, 0],
    ['shell', { command: ['bash', '-lc', 'nl -ba a.ts'] }, 1],
    ['exec_command', { cmd: 'cat a.ts 2>/dev/null || true' }, 1],
    ['run_commands', { commands: ['cat a', 'ls', 'head -2 b'] }, 2],
    ['fetch', { command: 'cat a' }, 0],
  ])('%s %j: %i', (tool, args, reads) => {
    expect(readsOfCall(tool, args)).toBe(reads);
  });
});

describe('the description of a recording', () => {
  test('lists its contents by session and in total', async () => {
    const about = await describeRecording(recordingPath('claude-code/traps.jsonl'));
    expect(about).toMatchObject({
      format: 'claude-code',
      counts: {
        sessions: 3,
        calls: 6,
        results: 5,
        reads: 1,
        compactions: 1,
        losses: { 'opaque-content': 2, 'repaired-text': 3 },
      },
    });
    expect(about.sessions.map(({ counts }) => counts.calls)).toEqual([5, 1, 0]);
    expect(about.losses).toHaveLength(12);
  });

  test('counts copied entries again separately', async () => {
    const { counts } = await describeRecording(recordingPath('codex/fork.jsonl'));
    expect(counts).toMatchObject({ calls: 13, copied: 29 });
  });

  test('counts transcript items by its format', async () => {
    const items = async (name: string): Promise<number> => {
      const { format, sessions } = await describeRecording(recordingPath(name));
      const [main] = sessions;
      return main === undefined ? 0 : transcriptItems(format, main.counts);
    };
    // Claude Code counts records of the user and the assistant, and Cline the file's messages.
    // Codex counts messages, calls and outputs. pi counts messages and results.
    expect(await items('claude-code/coding.jsonl')).toBe(26);
    expect(await items('cline/agentic.compaction.json')).toBe(3);
    expect(await items('codex/before-envelopes.jsonl')).toBe(5);
    expect(await items('pi/coding.jsonl')).toBe(29);
  });

  test('counts sealed thoughts, joined texts and sub-agents, but not queued prompts and repeats', async () => {
    const said = (uuid: string, content: unknown) => ({
      type: 'assistant',
      uuid,
      sessionId: 's',
      message: { id: 'm', role: 'assistant', content: [content] },
    });
    const prompt = { type: 'user', uuid: 'u', sessionId: 's', message: { role: 'user', content: 'go' } };
    const progress = {
      type: 'progress',
      uuid: 'p',
      sessionId: 's',
      data: { type: 'agent_progress', agentId: 'a', message: said('n', { type: 'text', text: 'hm' }) },
    };
    const lines = linesOf(
      prompt,
      said('a', { type: 'thinking', thinking: '', signature: 'x' }),
      said('b', { type: 'text', text: 'one' }),
      said('c', { type: 'text', text: 'two' }),
      said('c', { type: 'text', text: 'two' }),
      { type: 'queue-operation', operation: 'enqueue', content: 'and', sessionId: 's' },
      { type: 'queue-operation', operation: 'remove', sessionId: 's' },
      progress,
    );
    const { format, sessions } = await describeSource(bytesSource(lines));
    expect(sessions.map(({ counts }) => transcriptItems(format, counts))).toEqual([4, 1]);
    expect(sessions[0]?.counts.messages).toMatchObject({ user: 2, assistant: 1 });
  });
});
