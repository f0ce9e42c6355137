import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ContextClient, ContextSession } from '../../src/index.js';

const FILES = 40;

/**
 * Runs turns: a user's message, a tool call, in every third turn a read of a whole file, and the
 * model's answer. A context is handed out before each model call.
 */
export async function runTurns(
  session: ContextSession,
  client: ContextClient,
  folder: string,
  turns: number,
): Promise<void> {
  await mkdir(folder, { recursive: true });
  await session.setSystemPrompt('You are a coding agent. '.repeat(60));
  for (let turn = 1; turn <= turns; turn++) {
    await session.reportMessage({
      role: 'user',
      text: `Turn ${turn}: ${'please look into this part of it. '.repeat(6)}`,
    });
    await session.assemble({ deliver: 'library' });
    const path = join(folder, `file-${turn % FILES}.ts`);
    const isRead = turn % 3 === 0;
    const content = `${turn}: ${'what the command or the file says, line by line\n'.repeat(60)}`;
    if (isRead) await writeFile(path, content);
    const { source } = await client.files.locate(path, { mustExist: false });
    const readings = isRead ? [{ source, reading: await client.files.read(source), activate: true }] : [];
    const tool = isRead ? 'read' : 'bash';
    await session.recordCall({ tool, args: { turn }, status: 'ok', content, readings, answer: () => content });
    if (turn % 20 === 0) {
      const { sets } = session.state;
      const plan = await session.planVerb('deactivate', sets.active.slice(0, 5));
      await session.recordCall({
        tool: 'deactivate',
        args: {},
        status: 'ok',
        content: 'done',
        plan,
        answer: () => 'done',
      });
    }
    await session.reportMessage({
      role: 'assistant',
      text: `Turn ${turn}: ${'this is what I found and what it means. '.repeat(12)}`,
    });
  }
}
