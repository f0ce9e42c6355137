/**
 * Writes the parcels: for Claude Code (a plug-in with its marketplace), MCP (a bundle and a
 * registry entry) and Gemini CLI (an extension). pi and OpenCode use the npm package. `npm run
 * pack:all` also writes parcels, with a bundle that contains Java.
 *
 * Usage after a build: `npm run parcels [-- FOLDER]`.
 */
import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { packExtension } from '@anthropic-ai/mcpb';
import { bundle, projectRoot } from './bundle.mjs';
import { unpack } from './pack/tarball.mjs';

const run = promisify(execFile);

/**
 * The registry lets only the GitHub account ACCOUNT publish names that begin with
 * `io.github.ACCOUNT/`. No account publishes this project yet.
 */
const WHY_NOT_PUBLISHED =
  'The name stands for the account that will publish it. The registry takes io.github.ACCOUNT/… from the GitHub ' +
  'account ACCOUNT only. Set mcpName in package.json to that name, publish the npm package, then publish this entry.';

/** The registry's schema that the entry follows. */
const REGISTRY_SCHEMA = 'https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json';
const SUMMARY = 'Records the files and results of an agent, with all versions, and gives them back.';
const HOOK_SUMMARY = 'Records sessions, and warns the agent of files that changed since it read them.';
/** Name of the server. Short, because agents put it before each tool's name. */
const SERVER = 'ctx';
const ARGUMENTS = ['mcp', '--short-ids'];
const INSTALLED = { [SERVER]: { command: 'palimpsest', args: ARGUMENTS } };
const AUTHOR = { name: 'Palimpsest' };

async function writeJson(path, value) {
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, `${JSON.stringify(value, null, 2)}\n`);
}

const text = (name) => join(projectRoot, 'src', 'agents', 'parcels', name);

/** Runs work in a draft folder of the project, so that bundled code finds its packages. */
async function inDraft(work) {
  const draft = await mkdtemp(join(projectRoot, 'node_modules', '.parcel-'));
  try {
    return await work(draft);
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
}

/** Returns Claude Code's hooks by event, from the table that `palimpsest setup` uses. */
const claudeHooks = () =>
  inDraft(async (draft) => {
    const options = { outdir: draft, splitting: false, outExtension: { '.js': '.mjs' } };
    await bundle({ entryPoints: ['scripts/pack/hook-groups.ts'], ...options });
    const { hookGroups } = await import(pathToFileURL(join(draft, 'hook-groups.mjs')).href);
    // Claude Code replaces the variable. `sh` runs the script even if it is not executable after
    // the installation.
    const script = 'sh "$' + '{CLAUDE_PLUGIN_ROOT}/hooks/event.sh"';
    const groups = hookGroups('claude-code', (ms, event) => `${script} ${ms} ${event}`);
    return Object.fromEntries(Object.entries(groups).map(([event, group]) => [event, [group]]));
  });

/**
 * Writes the plug-in. A user adds the folder as a marketplace and installs `palimpsest` from it.
 */
async function writeClaudePlugin(to, { name, version, license }) {
  await writeJson(join(to, '.claude-plugin', 'marketplace.json'), {
    name,
    description: SUMMARY,
    owner: AUTHOR,
    plugins: [{ name, source: `./${name}`, description: SUMMARY, version, license, category: 'development' }],
  });
  const plugin = join(to, name);
  await writeJson(join(plugin, '.claude-plugin', 'plugin.json'), {
    name,
    version,
    description: SUMMARY,
    author: AUTHOR,
    license,
    keywords: ['context', 'history', 'mcp'],
  });
  await writeJson(join(plugin, '.mcp.json'), { mcpServers: INSTALLED });
  await writeJson(join(plugin, 'hooks', 'hooks.json'), { description: HOOK_SUMMARY, hooks: await claudeHooks() });
  await cp(text('event.sh'), join(plugin, 'hooks', 'event.sh'));
  await mkdir(join(plugin, 'skills', name), { recursive: true });
  await cp(text('SKILL.md'), join(plugin, 'skills', name, 'SKILL.md'));
  await cp(text('README.md'), join(plugin, 'README.md'));
}

/** Writes the extension for `gemini extensions install FOLDER`. */
async function writeGeminiExtension(to, { name, version }) {
  await writeJson(join(to, 'gemini-extension.json'), {
    name,
    version,
    description: SUMMARY,
    contextFileName: 'GEMINI.md',
    mcpServers: INSTALLED,
  });
  // Gemini CLI does not support front matter in context files.
  const skill = await readFile(text('SKILL.md'), 'utf8');
  await writeFile(join(to, 'GEMINI.md'), skill.replace(/^---\n.*?\n---\n\n/s, ''));
}

const writeRegistryEntry = (path, { name, version, mcpName }) =>
  writeJson(path, {
    $schema: REGISTRY_SCHEMA,
    name: mcpName,
    title: 'Palimpsest',
    description: SUMMARY,
    version,
    _meta: { 'io.modelcontextprotocol.registry/publisher-provided': { unpublished: WHY_NOT_PUBLISHED } },
    packages: [
      {
        registryType: 'npm',
        identifier: name,
        version,
        runtimeHint: 'npx',
        transport: { type: 'stdio' },
        packageArguments: [
          { type: 'positional', value: ARGUMENTS[0] },
          { type: 'named', name: ARGUMENTS[1] },
          {
            type: 'named',
            name: '--root',
            description: 'Folder that the agent may use; the default is the working folder',
            format: 'filepath',
            isRepeated: true,
          },
        ],
      },
    ],
  });

const LONG_SUMMARY = 'Offers tools for files, and keeps every file and result in a local database with its versions.';
const NEEDS_JAVA = 'needs Java 17 on this machine; without it calls are answered and kept until it is there.';
const BRINGS_JAVA = 'and its Java come with the bundle.';

const bundleManifest = ({ name, version, license, engines }, java) => ({
  manifest_version: '0.3',
  name,
  display_name: 'Palimpsest',
  version,
  description: SUMMARY,
  long_description: `${LONG_SUMMARY} The database ${java}`,
  author: AUTHOR,
  license,
  server: {
    type: 'node',
    entry_point: 'server/dist/cli.js',
    mcp_config: {
      command: 'node',
      // biome-ignore lint/suspicious/noTemplateCurlyInString: the host replaces both.
      args: ['${__dirname}/server/dist/cli.js', ...ARGUMENTS, '--root', '${user_config.folder}'],
    },
  },
  tools_generated: true,
  user_config: {
    folder: {
      type: 'directory',
      title: 'Folder',
      description: 'The folder whose files the tools may read and change',
      required: true,
    },
  },
  compatibility: { platforms: [process.platform], runtimes: { node: engines.node } },
});

/** Copies the checkout's built program into a folder, with ripgrep for this platform. */
async function addCheckout(server, draft) {
  const packed = await run('npm', ['pack', '--ignore-scripts', '--json', '--pack-destination', draft], {
    cwd: projectRoot,
    maxBuffer: 64 * 1_048_576,
  });
  const [{ filename }] = JSON.parse(packed.stdout);
  await unpack(join(draft, filename), server);
  for (const search of ['ripgrep', `ripgrep-${process.platform}-${process.arch}`])
    await cp(join(projectRoot, 'node_modules', '@vscode', search), join(server, 'node_modules', '@vscode', search), {
      recursive: true,
      dereference: true,
    });
}

/**
 * Writes the bundle from the npm packages if they are given, otherwise from the checkout's program.
 */
async function writeBundle(path, manifest, { program, node }) {
  await inDraft(async (draft) => {
    const content = join(draft, 'content');
    const server = join(content, 'server');
    if (node === undefined) await addCheckout(server, draft);
    else {
      await unpack(program, server);
      await unpack(node, join(server, 'node_modules', '@palimpsest', `node-${process.platform}-${process.arch}`));
    }
    const java = node === undefined ? NEEDS_JAVA : BRINGS_JAVA;
    await writeJson(join(content, 'manifest.json'), bundleManifest(manifest, java));
    if (!(await packExtension({ extensionPath: content, outputPath: path, silent: true })))
      throw new Error(`The MCP bundle ${path} could not be packed: its manifest was refused.`);
  });
}

/**
 * Empties a folder and writes all parcels into it. The program must be built. `packages` has the
 * tarballs of the program and of this platform's node, for the bundle.
 */
export async function writeParcels(folder, packages = {}) {
  const manifest = JSON.parse(await readFile(join(projectRoot, 'package.json'), 'utf8'));
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  await writeClaudePlugin(join(folder, 'claude'), manifest);
  await writeGeminiExtension(join(folder, 'gemini'), manifest);
  await writeRegistryEntry(join(folder, 'server.json'), manifest);
  const bundle = `${manifest.name}-${process.platform}-${process.arch}.mcpb`;
  await writeBundle(join(folder, bundle), manifest, packages);
}

if (process.argv[1] === fileURLToPath(import.meta.url))
  await writeParcels(resolve(process.argv[2] ?? join(projectRoot, 'packages', 'parcels')));
