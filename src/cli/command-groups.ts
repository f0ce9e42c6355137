import type { Argument, Command } from 'commander';

const argumentName = (argument: Argument): string => {
  const name = `${argument.name()}${argument.variadic ? '...' : ''}`;
  return argument.required ? `<${name}>` : `[${name}]`;
};

/** A group of commands in the help, with its heading and example. */
interface CommandGroup {
  readonly heading: string;
  /** The commands in the group, with their short descriptions. */
  readonly commands: Readonly<Record<string, string>>;
  /** Commands that only `palimpsest help all` lists, with their short descriptions. */
  readonly rare?: Readonly<Record<string, string>>;
}

const GROUPS: readonly CommandGroup[] = [
  {
    heading: 'Look, such as "palimpsest open LAST":',
    commands: {
      open: "an agent's recorded session in the browser, request by request",
      costs: 'what sessions cost by day, agent, model or project',
      sessions: 'list the sessions in the database',
      log: 'the turns of a session: messages, calls, changes',
      review: 'all sessions in the browser',
      context: 'what the model was sent at a moment',
      diff: 'what changed between two moments',
      show: 'an object at a moment',
      who: 'which sessions saw an object',
      search: 'a text in every message and version',
    },
    rare: {
      cat: "an object's exact text at a moment",
      report: "how a context's tokens are spent",
      query: 'a Datalog query, read-only',
      note: "a reviewer's verdict on a step or object",
    },
  },
  {
    heading: 'Steer, such as "palimpsest setup":',
    commands: {
      setup: "put Palimpsest into agents' settings, or take it out",
      watch: 'record sessions of agents while they run',
      run: 'start an agent and record each request it sends',
      mcp: 'serve one agent over stdio',
      serve: 'serve several agents over HTTP, with the review page',
      fork: 'continue a session from an earlier step',
      restore: "compare or restore an agent's files",
    },
    rare: {
      gateway: 'forward model calls unchanged and record them',
      steer: 'switch the steering of a running session',
      undo: 'revert what one step changed',
      compact: 'replace old turns by a summary',
    },
  },
  {
    heading: 'Compare, such as "palimpsest lab ~/.claude/projects":',
    commands: {
      lab: 'compare context policies on recorded sessions',
      replay: 'run recorded sessions through the real client',
    },
  },
  {
    heading: 'Share, such as "palimpsest export S session.html":',
    commands: {
      export: 'write a session as one file',
      import: 'read such a file into the database',
    },
    rare: { pack: 'write a context within a token budget' },
  },
  {
    heading: 'Operate, such as "palimpsest doctor":',
    commands: {
      doctor: 'find problems and say what to do',
      disk: 'what takes disk space, and what would free it',
      node: 'start, stop and inspect the database node',
      verify: 'rebuild every handed-out context and compare',
    },
    rare: {
      erase: 'erase a session, object or text for good',
      retain: 'set how long sessions are kept',
      journal: 'repair journals of acknowledged steps',
      uninstall: 'stop what runs and list or remove its data',
      gc: 'archive derived files of a session directory',
      completion: "print a shell's completion script",
    },
  },
];

/**
 * Adds commands to a program and groups them in its help. The help lists the usual commands, or
 * with `all` every command. Commands that are in no group are listed under "Operate".
 */
export function addInGroups(program: Command, commands: readonly Command[], { all }: { readonly all: boolean }): void {
  const rare = new Set(GROUPS.flatMap((group) => Object.keys(group.rare ?? {})));
  const named = GROUPS.flatMap((group) =>
    Object.entries({ ...group.commands, ...group.rare }).map(([name, summary]) => ({ ...group, name, summary })),
  );
  const placeOf = (command: Command): number => {
    const place = named.findIndex(({ name }) => name === command.name());
    return place < 0 ? named.length : place;
  };
  for (const command of [...commands].sort((a, b) => placeOf(a) - placeOf(b))) {
    const found = named[placeOf(command)];
    command.helpGroup(found?.heading ?? GROUPS.at(-1)?.heading ?? '');
    if (found !== undefined) command.summary(found.summary);
    program.addCommand(command);
  }
  program.configureHelp({
    subcommandTerm: (command) => [command.name(), ...command.registeredArguments.map(argumentName)].join(' '),
    visibleCommands: (of) => of.commands.filter((command) => all || !rare.has(command.name())),
  });
  const everyOne = all ? '' : '\n"palimpsest help all" lists every command.';
  program.addHelpText('after', `\n"palimpsest help COMMAND" explains a command.${everyOne}`);
}
