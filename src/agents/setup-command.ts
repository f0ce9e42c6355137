import { Argument, Command, Option } from 'commander';
import { dataFlag } from '../cli/flags.js';
import type { Colours } from '../cli/output.js';
import type { Agent, Scope, ServerCommand, Surroundings, Wanted, Way, WayName } from './agent.js';
import type { Installed } from './installed.js';
import type { PlannedFile } from './plan-setup.js';
import type { PlannedUndo } from './take-back.js';

interface SetupFlags {
  readonly project?: boolean;
  readonly way?: WayName;
  readonly yes?: boolean;
  readonly undo?: boolean;
  readonly dryRun?: boolean;
  readonly data?: string;
}

/** Names of agents on the command line. A test compares them with the table of agents. */
export const AGENT_NAMES = ['claude', 'codex', 'opencode', 'gemini', 'pi', 'vscode', 'cursor', 'cline'] as const;

/** Width of lines, in characters, if the output is a file or a pipe. */
const PLAIN_CELLS = 96;
/** Maximum characters of a shown line. A settings file may consist of one long line. */
const WIDEST = 160;
/** Characters that a cut line shows before the first difference. */
const KEPT = 40;

const cut = (line: string): string => (line.length > WIDEST ? `${line.slice(0, WIDEST)} …` : line);

/**
 * Cuts long lines of a hunk. An added line that replaces a removed one is shown from shortly before
 * their first difference.
 */
function cutLines(lines: readonly string[]): readonly string[] {
  const [removed, added] = ['-', '+'].map((sign) => lines.filter((line) => line.startsWith(sign)));
  return lines.map((line) => {
    const before = removed?.[added?.indexOf(line) ?? -1];
    if (line.length <= WIDEST || before === undefined) return cut(line);
    let same = 1;
    while (same < before.length && before[same] === line[same]) same += 1;
    return same <= KEPT ? cut(line) : cut(`+… ${line.slice(same - KEPT)}`);
  });
}

/** In a unified diff, a side without lines has the number of the line before it. */
const placeOf = (start: number, lines: number): string => `${lines === 0 ? start - 1 : start},${lines}`;

/** Returns a unified diff of a file. */
async function diffLines(
  path: string,
  [before, after]: readonly [string | undefined, string | undefined],
  colours: Colours,
): Promise<readonly string[]> {
  const { structuredPatch } = await import('diff');
  const { hunks } = structuredPatch(path, path, before ?? '', after ?? '', '', '', { context: 2 });
  const styled = (line: string): string =>
    line.startsWith('+') ? colours.green(line) : line.startsWith('-') ? colours.red(line) : line;
  const heading = [
    colours.bold(before === undefined ? '--- (no file)' : `--- ${path}`),
    colours.bold(after === undefined ? '+++ (no file)' : `+++ ${path}`),
  ];
  return hunks.length === 0
    ? []
    : [
        ...heading,
        ...hunks.flatMap(({ oldStart, oldLines, newStart, newLines, lines }) => [
          colours.cyan(`@@ -${placeOf(oldStart, oldLines)} +${placeOf(newStart, newLines)} @@`),
          ...cutLines(lines.map((line) => line.replace(/\r$/, ''))).map(styled),
        ]),
      ];
}

/** Describes what a way records and what it does not. */
function givesText({ ourTools, itsTools, steers }: Way['gives']): string {
  const parts = [
    [ourTools, "Palimpsest's tools"],
    [itsTools, "the agent's own tools and prompts"],
  ] as const;
  const [yes, no] = [true, false].map((wanted) => parts.filter(([is]) => is === wanted).map(([, name]) => name));
  const recorded = [yes?.join(', '), ...(no ?? [])].join(', not ');
  return `records ${recorded}; ${steers ? "builds the agent's requests" : "leaves the agent's requests unchanged"}`;
}

/** Describes an agent and each way into it. A `*` marks the chosen ways. */
async function agentLines(
  { agent, program, version }: Installed,
  chosen: readonly WayName[],
): Promise<readonly string[]> {
  const [{ coloursFor, standardOutput }, { wrapped }] = await Promise.all([
    import('../cli/output.js'),
    import('../cli/fitted-table.js'),
  ]);
  const target = standardOutput({});
  const where = program === undefined ? 'found by its settings; its program is not on the PATH' : program;
  const below = (text: string): readonly string[] => wrapped(text, target.width ?? PLAIN_CELLS, ' '.repeat(10));
  return [
    `${coloursFor(target).bold(agent.title)}${version === undefined ? '' : ` ${version}`} (${where})`,
    ...Object.entries(agent.ways).flatMap(([name, { gives, note }]) => {
      const isChosen = chosen.includes(name as WayName);
      const [first = '', ...rest] = below(givesText(gives));
      return [
        `  ${isChosen ? '*' : ' '} ${name.padEnd(5)} ${first.trimStart()}`,
        ...rest,
        ...(note === undefined || !isChosen ? [] : below(note)),
      ];
    }),
  ];
}

/**
 * Returns the ways that a setup writes: the named one, or by default the first one. If the settings
 * can have hooks, they are added to the default.
 */
function chosenWays(
  agent: Agent,
  { way }: SetupFlags,
  { scope, at }: { readonly scope: Scope; readonly at: Surroundings },
): readonly WayName[] {
  if (way !== undefined) return [way];
  const names = Object.keys(agent.ways) as WayName[];
  const hasHooks = scope === 'user' && at.platform !== 'win32';
  return names.filter((name, at) => at === 0 || (name === 'hooks' && hasHooks));
}

/** Asks before a change. Returns false if the user declines. */
async function isAgreed(question: string, { yes }: SetupFlags): Promise<boolean> {
  if (yes === true) return true;
  const [{ askYes }, { UsageError }] = await Promise.all([import('../cli/output.js'), import('../host/settings.js')]);
  const answer = await askYes(question);
  if (answer === undefined)
    throw new UsageError('Nothing was changed: there is no terminal to ask on. Add --yes to make these changes.');
  return answer;
}

async function dataOf(flags: SetupFlags): Promise<{ readonly dataDir: string; readonly isDefault: boolean }> {
  const [{ resolve }, { dataFolder }] = await Promise.all([import('node:path'), import('../host/environment.js')]);
  const dataDir = resolve(flags.data ?? dataFolder(process.env));
  return { dataDir, isDefault: dataDir === dataFolder({}) };
}

async function surroundings(): Promise<Surroundings> {
  const { homedir } = await import('node:os');
  return { env: process.env, home: homedir(), platform: process.platform, cwd: process.cwd() };
}

/** Prints lines immediately, because a question follows. */
async function show(lines: readonly string[]): Promise<void> {
  const { standardOutput, writeOutput } = await import('../cli/output.js');
  if (lines.length > 0) await writeOutput(lines, { ...standardOutput({}), pager: false });
}

/** Installs the client of hooks, and the command that starts the watcher, in the data folder. */
async function prepareHooks(
  server: ServerCommand,
  given: { readonly at: Surroundings; readonly packageFolder: string; readonly dataDir: string },
): Promise<void> {
  const [{ CLIENT_WORDS, installHookClient }, { writeStart }] = await Promise.all([
    import('./hooks/install-client.js'),
    import('./hooks/hook-folder.js'),
  ]);
  const { dataDir } = given;
  const words = CLIENT_WORDS[await installHookClient(dataDir, given)];
  const { command, args } = server;
  await writeStart(dataDir, [command, ...args.slice(0, args.indexOf('mcp')), 'watch', '--data', dataDir]);
  await show([words]);
}

async function install(names: readonly string[], flags: SetupFlags, packageFolder: string): Promise<void> {
  const [{ AGENTS }, { findAgent }, { applyPlanned, planSetup }, { serverCommand }, output, { messageOf }] =
    await Promise.all([
      import('./agent-table.js'),
      import('./installed.js'),
      import('./plan-setup.js'),
      import('./server-command.js'),
      import('../cli/output.js'),
      import('../values/thrown.js'),
    ]);
  const [at, data] = await Promise.all([surroundings(), dataOf(flags)]);
  const colours = output.coloursFor(output.standardOutput({}));
  const scope = flags.project === true ? 'project' : 'user';
  const asked = AGENTS.filter(({ id }) => names.length === 0 || names.includes(id));
  const found = await Promise.all(
    asked.map(async (agent) => {
      const here = await findAgent(agent, at);
      return here ?? (names.length > 0 ? { agent, program: undefined, version: undefined } : undefined);
    }),
  );
  const planned: PlannedFile[] = [];
  /** The server's command of the last agent that gets hooks. */
  let hooked: ServerCommand | undefined;
  for (const one of found.filter((here) => here !== undefined)) {
    const { agent } = one;
    const ways = chosenWays(agent, flags, { scope, at });
    await show(await agentLines(one, ways));
    try {
      const server = await serverCommand(agent, scope, {
        at,
        data,
        program: { packageFolder, node: process.execPath },
      });
      const { dataDir } = data;
      const wanted: Wanted = { at, scope, server, packageFolder, dataDir, isDataNamed: flags.data !== undefined };
      const plan = await planSetup(agent, ways, { wanted, dataDir });
      if (ways.includes('hooks') && !('refused' in plan)) hooked = server();
      if ('refused' in plan) await show([`  skipped: ${plan.refused}`]);
      else if (plan.length === 0) await show(['  is set up already']);
      else {
        for (const { file, after } of plan) await show(await diffLines(file.path, [file.text, after], colours));
        await show(
          plan.flatMap(({ file, replaced }) =>
            replaced.flatMap((entry) => [`${colours.yellow('REPLACES')} in ${file.path}`, ...entry.split('\n')]),
          ),
        );
        planned.push(...plan);
      }
    } catch (error) {
      output.tell(`palimpsest: ${messageOf(error)}`);
      process.exitCode = 1;
    }
  }
  if (found.every((one) => one === undefined))
    await show([`No agent was found. Name one to set it up anyway: palimpsest setup ${AGENT_NAMES.join('|')}`]);
  // The diffs may have scrolled out of view.
  if (planned.length > 1) await show(['', 'Files to change:', ...planned.map(({ file }) => `  ${file.path}`)]);
  if (flags.dryRun === true) return;
  if (planned.length === 0) {
    // A newer version of this program may have a newer client of hooks.
    if (hooked !== undefined) await prepareHooks(hooked, { at, packageFolder, dataDir: data.dataDir });
    return;
  }
  if (!(await isAgreed(`Change ${planned.length === 1 ? 'this file' : `these ${planned.length} files`}?`, flags)))
    return show(['Nothing was changed.']);
  // A hook must find its program at its first event.
  if (hooked !== undefined) await prepareHooks(hooked, { at, packageFolder, dataDir: data.dataDir });
  for (const one of planned) {
    await applyPlanned(one, data.dataDir);
    await show([`changed ${one.file.path}`]);
  }
  await show([
    'Restart the agent. palimpsest doctor says whether it reaches Palimpsest; palimpsest setup --undo undoes this.',
  ]);
}

async function undo(names: readonly string[], flags: SetupFlags): Promise<void> {
  const [{ keptChanges }, { applyUndo, planUndo }, output, { messageOf }] = await Promise.all([
    import('./kept-changes.js'),
    import('./take-back.js'),
    import('../cli/output.js'),
    import('../values/thrown.js'),
  ]);
  const { dataDir } = await dataOf(flags);
  const colours = output.coloursFor(output.standardOutput({}));
  const changes = (await keptChanges(dataDir)).filter(
    ({ agent, scope }) =>
      (names.length === 0 || names.includes(agent)) && (flags.project !== true || scope === 'project'),
  );
  if (changes.length === 0)
    return show([`${dataDir} has no record of a setup to undo. If another data folder has it, add --data FOLDER.`]);
  const planned: PlannedUndo[] = [];
  for (const change of [...changes].reverse()) {
    try {
      const plan = await planUndo(change, dataDir);
      await show(await diffLines(change.path, [plan.file.text, plan.after], colours));
      await show(
        plan.left.map((entry) => `${entry} in ${change.path} stays: it runs another program now. Remove it by hand.`),
      );
      planned.push(plan);
    } catch (error) {
      output.tell(`palimpsest: ${messageOf(error)}`);
      process.exitCode = 1;
    }
  }
  if (planned.length === 0 || flags.dryRun === true) return;
  if (!(await isAgreed(`Undo ${planned.length === 1 ? 'this change' : `these ${planned.length} changes`}?`, flags)))
    return show(['Nothing was changed.']);
  for (const plan of planned) {
    await applyUndo(plan, dataDir);
    await show([`undid the change of ${plan.change.path}`]);
  }
}

/**
 * Undoes every setup that the data folder records, without asking. After that, hooks of agents that
 * still run do not start a watcher. Returns a line for each settings file. If a file cannot be
 * changed, its line says why.
 */
export async function takeBackSetups(): Promise<readonly string[]> {
  const [{ keptChanges }, { applyUndo, planUndo }, { forbidStart }, { messageOf }] = await Promise.all([
    import('./kept-changes.js'),
    import('./take-back.js'),
    import('./hooks/hook-folder.js'),
    import('../values/thrown.js'),
  ]);
  const { dataDir } = await dataOf({});
  await forbidStart(dataDir);
  const lines: string[] = [];
  for (const change of [...(await keptChanges(dataDir))].reverse()) {
    try {
      const plan = await planUndo(change, dataDir);
      await applyUndo(plan, dataDir);
      lines.push(`Undid the change of ${change.path}.`);
      lines.push(...plan.left.map((entry) => `${entry} in ${change.path} stays: it runs another program now.`));
    } catch (error) {
      lines.push(`The change of ${change.path} stays: ${messageOf(error)}`);
    }
  }
  return lines;
}

/**
 * `palimpsest setup`: adds Palimpsest to the settings of agents, and removes it again.
 * `packageFolder` is the folder of this installed program.
 */
export function setupCommand(packageFolder: string): Command {
  return new Command('setup')
    .description(
      'set up installed agents: show each change of their settings, ask, and keep a backup; comments and order stay',
    )
    .addArgument(new Argument('[agents...]', 'agents (default: all that are installed)').choices(AGENT_NAMES))
    .addOption(new Option('--project', 'change the settings of the project in this folder, not those of the user'))
    .addOption(
      new Option(
        '--way <name>',
        'mcp offers tools to the agent; loop (pi, OpenCode) also records everything and builds its requests; hooks ' +
          '(Claude Code, Codex, Gemini CLI) record everything and warn of changed files (default: the first way ' +
          'that setup lists, and hooks)',
      ).choices(['mcp', 'loop', 'hooks']),
    )
    .addOption(new Option('--yes', 'make the changes without asking'))
    .addOption(new Option('--dry-run', 'show the changes and make none').conflicts('yes'))
    .addOption(new Option('--undo', 'undo the changes of setup; later changes by others stay').conflicts('way'))
    .addOption(dataFlag())
    .action(async (names: readonly string[], flags: SetupFlags) => {
      const { reportFailure } = await import('../cli/output.js');
      await reportFailure({}, () => (flags.undo === true ? undo(names, flags) : install(names, flags, packageFolder)));
    });
}
