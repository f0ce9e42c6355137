import { spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { Argument, Command, Option } from 'commander';
import type { LogLevel } from '../host/log.js';
import { defined } from '../values/defined.js';
import { servedContracts } from './contract.js';
import { collect, dataFlag, wholeBetween } from './flags.js';
import { printText, reportFailure, tell } from './output.js';
import type { ServedParts } from './serve.js';
import { collectOldGarbageSoon } from './young-generation.js';

/** Flags of `review`. */
export interface ReviewPageFlags {
  readonly data?: string;
  readonly mount?: readonly string[];
  readonly port: number;
  readonly logLevel: LogLevel;
  /** False with `--no-open`. */
  readonly open: boolean;
}

/** The command that opens an address on each system, if $BROWSER is not set. */
const OPENERS: Readonly<Partial<Record<NodeJS.Platform, readonly [string, ...string[]]>>> = {
  darwin: ['open'],
  win32: ['cmd', '/c', 'start', ''],
};

/** How long the browser has to read the redirect file, milliseconds. */
const OPENED_MS = 60_000;

/**
 * Opens an address in the browser. Other users can see program arguments, and the address admits
 * its first visitor. The browser therefore opens a private file that redirects to it.
 */
async function openBrowser(address: string): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'palimpsest-review-'));
  const remove = (): Promise<void> => rm(folder, { recursive: true, force: true });
  const file = join(folder, 'open.html');
  // The address needs no escaping: it has only letters, digits and address separators.
  await writeFile(
    file,
    `<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url=${address}">\n`,
    { mode: 0o600 },
  );
  const named = process.env.BROWSER;
  const [program, ...args] =
    named === undefined || named === '' ? (OPENERS[process.platform] ?? ['xdg-open']) : [named];
  const child = spawn(program, [...args, pathToFileURL(file).href], { detached: true, stdio: 'ignore' });
  child.once('error', () => tell(`No browser could be opened (${program}): open the address above.`));
  child.unref();
  setTimeout(() => void remove().catch(() => undefined), OPENED_MS).unref();
  process.once('exit', () => void remove().catch(() => undefined));
}

/** The version that serves the review page, and the parts that it is served with. */
export interface BuiltPage extends ServedParts {
  readonly version: string;
}

/** Serves the review page for the data folder, read-only, until the process ends. */
export async function serveReviewPage(
  session: string | undefined,
  flags: ReviewPageFlags,
  { version, web, contracts }: BuiltPage,
): Promise<void> {
  const [{ serverSettings }, { settingsOfPast }, { serveHttp }] = await Promise.all([
    import('../host/settings.js'),
    import('../host/past-settings.js'),
    import('../http/http-server.js'),
  ]);
  const { data, mount, port, logLevel, open } = flags;
  const given = { ...defined({ data, mount }), durability: 'process', shareSessions: true, readOnly: true } as const;
  const settings = await settingsOfPast(serverSettings(given, { env: process.env, cwd: process.cwd(), version }));
  const view = session === undefined ? '' : `strip?session=${encodeURIComponent(session)}&live=1`;
  const announce = ({ page }: { readonly page: (view?: string) => string }): void => {
    printText(`The review page is at ${page(view)}\nThe address admits one visitor, once. Press Ctrl-C to end it.`);
    if (open) void openBrowser(page(view)).catch((error: unknown) => tell(String(error)));
  };
  // The server's token is not shown, because the page needs nothing that requires it.
  await serveHttp(settings, {
    port,
    tokenFile: undefined,
    noToken: false,
    logLevel,
    web,
    reviewsAll: true,
    copiesBelow: process.cwd(),
    announce,
    ...(await servedContracts(contracts)),
  });
}

/**
 * `palimpsest review`: serves the review page for the data folder, read-only.
 */
export function reviewPageCommand(version: string, parts: ServedParts): Command {
  return new Command('review')
    .description('show sessions in the browser: the context of each model call and why it changed')
    .addArgument(new Argument('[session]', 'session id or prefix (default: the list of all sessions)'))
    .addOption(dataFlag())
    .addOption(
      new Option(
        '--mount <mapping>',
        'show paths as an agent in a sandbox saw them: AGENT=CANONICAL[,FILESYSTEM-ID]; repeatable',
      ).argParser(collect),
    )
    .addOption(new Option('--port <number>', 'port; 0 picks a free one').argParser(wholeBetween(0, 65_535)).default(0))
    .addOption(new Option('--no-open', 'print the address without opening it'))
    .addOption(
      new Option('--log-level <level>', 'log level on stderr')
        .choices(['silent', 'error', 'warn', 'info', 'debug'])
        .default('warn'),
    )
    .action((session: string | undefined, flags: ReviewPageFlags) => {
      collectOldGarbageSoon();
      return reportFailure({}, () => serveReviewPage(session, flags, { version, ...parts }));
    });
}
