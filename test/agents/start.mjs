import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import startNode from '../support/start-node.mjs';

const run = promisify(execFile);

/** Programs that the suites run, with their npm packages. */
const PACKAGES = {
  claude: '@anthropic-ai/claude-code',
  codex: '@openai/codex',
  opencode: 'opencode-ai',
  gemini: '@google/gemini-cli',
  pi: '@earendil-works/pi-coding-agent',
  mcpb: '@anthropic-ai/mcpb',
  // pi and OpenCode's database need a later Node.js than this project.
  node: 'node',
};

/** Asks npm once for the newest versions, so that all suites of a run use the same ones. */
async function newestVersions() {
  const found = Object.entries(PACKAGES).map(async ([program, name]) => {
    const { stdout } = await run('npm', ['view', name, 'dist-tags.latest']);
    const version = stdout.trim();
    if (version === '') throw new Error(`npm view ${name} dist-tags.latest printed nothing.`);
    return [program, { name, version }];
  });
  return Object.fromEntries(await Promise.all(found));
}

/** Starts the node of the suites and prints the versions that they run. */
export default async function start() {
  const versions = await newestVersions();
  const shown = Object.values(versions).map(({ name, version }) => `${name} ${version}`);
  process.stderr.write(`The newest versions, which this run uses: ${shown.join(', ')}\n`);
  process.env.PALIMPSEST_TEST_AGENTS = JSON.stringify(versions);
  await startNode();
}
