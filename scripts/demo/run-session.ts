import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { ContextClient, type SessionAssembly, type sessionId } from '../../src/index.js';
import type { FilesystemId } from '../../src/objects/ids.js';
import type { NodeAddress } from '../../src/xtdb/address.js';
import type { DemoCall, Narrator } from './narrator.js';

/** The places and names of a demonstration. */
export interface DemoSetting {
  readonly repository: string;
  /** A folder outside the repository, for a copy of its docs that the agent may edit. */
  readonly copy: string;
  /** Flags that make the MCP server use the node. */
  readonly serverFlags: readonly string[];
  readonly address: NodeAddress;
  readonly filesystemId: FilesystemId;
  readonly session: ReturnType<typeof sessionId>;
}

/** The results of a demonstration. */
export interface DemoRun extends Pick<DemoSetting, 'repository' | 'copy' | 'session'> {
  readonly calls: readonly DemoCall[];
  /** The contexts just before and just after the agent collapses a file. */
  readonly before: SessionAssembly;
  readonly after: SessionAssembly;
  /** Characters of each version of the edited file, oldest first. */
  readonly editedChars: readonly number[];
}

/**
 * Runs an agent over MCP, then a reviewer who reads contexts and versions from the database.
 * `onEnd` may use the reviewer's client before it closes.
 * @throws if the rebuilt context of turn 1 differs from the first one
 */
export async function runSession(
  { repository, copy, serverFlags, address, filesystemId, session }: DemoSetting,
  narrator: Narrator,
  onEnd: (reviewer: ContextClient) => Promise<void> = async () => undefined,
): Promise<DemoRun> {
  cpSync(join(repository, 'docs'), join(copy, 'docs'), { recursive: true });
  const agent = new Client({ name: 'demo-agent', version: '1.0.0' });
  const calls: DemoCall[] = [];
  /** Makes one tool call. Sends the turn's id, as some agents do. */
  const call = async (turn: string, name: string, args: Readonly<Record<string, unknown>>): Promise<void> => {
    const result = await agent.callTool({ name, arguments: args, _meta: { turnId: turn } });
    const answer = (result.content as { readonly text: string }[])[0]?.text ?? '';
    const made = { turn, name, args, answer };
    calls.push(made);
    narrator.call(made);
  };
  let reviewer: ContextClient | undefined;
  try {
    await agent.connect(
      new StdioClientTransport({
        command: process.execPath,
        args: [
          join(repository, 'dist/cli.js'),
          'mcp',
          ...['--root', repository, '--root', copy],
          ...serverFlags,
          ...['--session', session],
        ],
        cwd: repository,
        stderr: 'inherit',
      }),
    );
    const client = await ContextClient.create({ address, roots: [repository, copy], cwd: repository, filesystemId });
    reviewer = client;
    // The agent gets its answers before the database has its steps. The reviewer is another
    // process, so it polls until all steps are stored.
    const contextNow = async (): Promise<SessionAssembly> => {
      const until = Date.now() + 10_000;
      let snapshot = await client.store.now();
      while ((await snapshot.steps(session)).length < calls.length) {
        if (Date.now() > until)
          throw new Error(`the database does not have all ${calls.length} steps of the agent after ten seconds`);
        snapshot = await client.store.now();
      }
      return contextAt(client, session, snapshot.basis);
    };

    narrator.heading('Turn 1: the agent lists, searches and reads this repository');
    await call('one', 'ls', { path: 'src/objects' });
    await call('one', 'grep', { pattern: 'export function .*Hash', path: 'src/objects' });
    await call('one', 'read', { path: 'src/objects/hashes.ts' });
    const read = `${session}:${calls.length}`;
    narrator.heading('The pool: what the agent knows; [unread] are discovery stubs');
    await call('one', 'context', {});
    narrator.heading('The context after turn 1, assembled');
    const first = await contextNow();
    narrator.context(first);

    narrator.heading('Turn 2: it edits a copy, activates a stub, deactivates the first file, pins');
    const edited = join(copy, 'docs/glossary.md');
    await call('two', 'read', { path: edited });
    await call('two', 'edit', {
      path: edited,
      edits: [{ oldText: '# Glossary', newText: '# Glossary of the demonstration' }],
    });
    await call('two', 'activate', { ids: ['src/objects/sets.ts'] });
    const before = await contextNow();
    // Deactivates the read too. Otherwise the context would show the same text as the read's
    // result.
    await call('two', 'deactivate', { ids: ['src/objects/hashes.ts', read] });
    const after = await contextNow();
    await call('two', 'pin', { ids: [edited] });
    narrator.heading('The context after turn 2, assembled');
    narrator.context(await contextNow());

    narrator.heading('History of the edited file, both times');
    const { id } = await client.files.locate(edited);
    const versions = await (await client.store.now()).historyOfHeads(id);
    for (const { validTime, txTime, txId, document } of versions) {
      const about =
        document === undefined
          ? 'gone'
          : `${document.char_count} characters, object_hash ${String(document.object_hash).slice(0, 12)}…`;
      narrator.line(
        `   valid ${validTime.toISOString()}  known ${txTime.toISOString()} (transaction ${txId})  ${about}`,
      );
    }

    narrator.heading('Time travel: the context of turn 1, rebuilt from its basis');
    const { basis = { validTime: new Date(), txId: undefined } } = first.record;
    const again = await contextAt(client, session, basis);
    narrator.line(`   basis: valid time ${basis.validTime.toISOString()}, transaction ${basis.txId}`);
    narrator.line(`   sha256 then ${first.record.sha256}\n   sha256 now  ${again.record.sha256}`);
    if (again.text !== first.text) throw new Error('the rebuilt context differs from the first one');
    narrator.line('   the same bytes');
    await onEnd(client);
    const editedChars = versions.flatMap(({ document }) =>
      document === undefined ? [] : [Number(document.char_count)],
    );
    return { repository, copy, session, calls, before, after, editedChars };
  } finally {
    await agent.close();
    await reviewer?.close();
  }
}

async function contextAt(
  client: ContextClient,
  session: DemoSetting['session'],
  { validTime, txId }: { readonly validTime: Date; readonly txId?: number | undefined },
): Promise<SessionAssembly> {
  const context = await client.contextAsOf(session, { validTime, ...(txId === undefined ? {} : { txId }) });
  if (context === undefined) throw new Error('the session of the demonstration is not in the database');
  return context;
}
