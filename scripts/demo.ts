/**
 * The demonstration: an embedded node, the MCP server, a real MCP client over this repository, then
 * a reviewer. It works in a temporary folder and removes it. Only the node's build stays in the
 * user's cache folder.
 */
import { cpSync, mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import {
  ContextClient,
  ensureNode,
  localFilesystemId,
  type SessionAssembly,
  sessionId,
  stopNode,
} from '../src/index.js';

const repository = dirname(dirname(fileURLToPath(import.meta.url)));
const scratch = realpathSync(mkdtempSync(join(tmpdir(), 'palimpsest-demo-')));
const copy = join(scratch, 'copy');
const dataDir = join(scratch, 'data');
const session = sessionId('demo');
const started = Date.now();

const heading = (text: string): void => console.log(`\n\x1b[1m== ${text}\x1b[0m`);
const clip = (text: string, lines: number, width = 150): string => {
  const all = text.split('\n');
  const shown = all.slice(0, lines).map((line) => (line.length > width ? `${line.slice(0, width - 1)}…` : line));
  return [...shown, ...(all.length > lines ? [`… ${all.length - lines} more lines`] : [])].join('\n');
};

let calls = 0;

/** Makes one tool call of the agent. Names the turn as agents do that send their own turn ids. */
async function call(agent: Client, turn: string, name: string, args: Record<string, unknown>): Promise<string> {
  calls += 1;
  const result = await agent.callTool({ name, arguments: args, _meta: { turnId: turn } });
  const text = (result.content as { readonly text: string }[])[0]?.text ?? '';
  console.log(`\n\x1b[36m> ${name} ${JSON.stringify(args)}\x1b[0m\n${clip(text, 7)}`);
  return text;
}

function showContext({ text, record }: SessionAssembly): void {
  for (const section of record.sections) console.log(`   ${section.name}: ${section.chars} characters`);
  console.log(`   sha256 ${record.sha256}\n`);
  console.log(clip(text, 40));
}

cpSync(join(repository, 'docs'), join(copy, 'docs'), { recursive: true });
heading('The node: starting XTDB 1.24 (about a minute the first time, seconds afterwards)');
const node = await ensureNode({
  dataDir,
  profile: 'rocksdb',
  cacheDir: join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'palimpsest'),
  onProgress: (message) => console.log(`   ${message}`),
});
console.log(`   ready after ${((Date.now() - started) / 1000).toFixed(1)} s`);

const agent = new Client({ name: 'demo-agent', version: '1.0.0' });
let reviewer: ContextClient | undefined;
try {
  const server = [
    join(repository, 'dist/cli.js'),
    'mcp',
    '--root',
    repository,
    '--root',
    copy,
    '--data',
    dataDir,
    '--session',
    session,
  ];
  await agent.connect(
    new StdioClientTransport({ command: process.execPath, args: server, cwd: repository, stderr: 'inherit' }),
  );
  reviewer = await ContextClient.create({
    address: node.address,
    roots: [repository, copy],
    cwd: repository,
    filesystemId: await localFilesystemId(dataDir),
  });
  // The agent has its answers before the database has its steps. The reviewer is another process
  // and polls until all steps are stored.
  const contextNow = async (client: ContextClient): Promise<SessionAssembly> => {
    const until = Date.now() + 10_000;
    let snapshot = await client.store.now();
    while ((await snapshot.steps(session)).length < calls) {
      if (Date.now() > until)
        throw new Error(`the database does not have all ${calls} steps of the agent after ten seconds`);
      snapshot = await client.store.now();
    }
    const { basis } = snapshot;
    const context = await client.contextAsOf(session, {
      validTime: basis.validTime,
      ...(basis.txId === undefined ? {} : { txId: basis.txId }),
    });
    if (context === undefined) throw new Error('the session of the demonstration is not in the database');
    return context;
  };

  heading('Turn 1: the agent lists, searches and reads this repository');
  await call(agent, 'one', 'ls', { path: 'src/objects' });
  await call(agent, 'one', 'grep', { pattern: 'export function .*Hash', path: 'src/objects' });
  await call(agent, 'one', 'read', { path: 'src/objects/hashes.ts' });
  heading('The pool: what the agent knows; [unread] are discovery stubs');
  await call(agent, 'one', 'context', {});
  heading('The context after turn 1, assembled');
  const first = await contextNow(reviewer);
  showContext(first);

  heading('Turn 2: it edits a copy, activates a stub, deactivates the first file, pins');
  const edited = join(copy, 'docs/glossary.md');
  await call(agent, 'two', 'read', { path: edited });
  await call(agent, 'two', 'edit', {
    path: edited,
    edits: [{ oldText: '# Glossary', newText: '# Glossary of the demonstration' }],
  });
  await call(agent, 'two', 'activate', { ids: ['src/objects/sets.ts'] });
  await call(agent, 'two', 'deactivate', { ids: ['src/objects/hashes.ts'] });
  await call(agent, 'two', 'pin', { ids: [edited] });
  heading('The context after turn 2, assembled');
  showContext(await contextNow(reviewer));

  heading('History of the edited file, both times');
  const { id } = await reviewer.files.locate(edited);
  for (const { validTime, txTime, txId, document } of await (await reviewer.store.now()).historyOfHeads(id)) {
    const about =
      document === undefined
        ? 'gone'
        : `${document.char_count} characters, object_hash ${String(document.object_hash).slice(0, 12)}…`;
    console.log(`   valid ${validTime.toISOString()}  known ${txTime.toISOString()} (transaction ${txId})  ${about}`);
  }

  heading('Time travel: the context of turn 1, rebuilt from its basis');
  const { basis = { validTime: new Date(), txId: undefined } } = first.record;
  const again = await reviewer.contextAsOf(session, {
    validTime: basis.validTime,
    ...(basis.txId === undefined ? {} : { txId: basis.txId }),
  });
  console.log(`   basis: valid time ${basis.validTime.toISOString()}, transaction ${basis.txId}`);
  console.log(`   sha256 then ${first.record.sha256}\n   sha256 now  ${again?.record.sha256}`);
  if (again?.text !== first.text) throw new Error('the rebuilt context differs from the first one');
  console.log('   the same bytes');
} finally {
  await agent.close();
  await reviewer?.close();
  await node.release();
  await stopNode(dataDir);
  rmSync(scratch, { recursive: true, force: true });
}
console.log(`\nDone in ${((Date.now() - started) / 1000).toFixed(1)} s.`);
