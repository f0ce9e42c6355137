import { spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { type ProgramParts, type ShowFlags, servedContracts } from '../../cli/contract.js';
import { printText, tell } from '../../cli/output.js';
import { collectOldGarbageSoon } from '../../cli/young-generation.js';
import type { ServedAddresses } from '../../http/http-server.js';
import { SYSTEM } from '../../process/system.js';
import { defined } from '../../values/defined.js';

/** Time in milliseconds that the browser has to read the redirect file. */
const OPENED_MS = 60_000;

/**
 * Opens an address in the browser. The address contains a token, and other users can see program
 * arguments. So a private file redirects to the address.
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
  const [program, ...args] = named === undefined || named === '' ? SYSTEM.opener : [named];
  const child = spawn(program, [...args, pathToFileURL(file).href], { detached: true, stdio: 'ignore' });
  child.once('error', () => tell(`No browser could be opened (${program}): open the address above.`));
  child.unref();
  setTimeout(() => void remove().catch(() => undefined), OPENED_MS).unref();
  process.once('exit', () => void remove().catch(() => undefined));
}

/**
 * Returns the session with an id, or with a unique prefix of its id.
 * @throws {HistoryError} `unknown-session` with the most similar ids; `ambiguous`
 */
async function namedSession(name: string, { data }: ShowFlags): Promise<string> {
  const [{ readSettings }, { settingsOfPast }, { openStore }, { settleJournals }, { requireSession }] =
    await Promise.all([
      import('../../host/settings.js'),
      import('../../host/past-settings.js'),
      import('../../host/open-store.js'),
      import('../../cli/review/settle-journals.js'),
      import('../../history/rebuild/find-session.js'),
    ]);
  const settings = readSettings(process.env, defined({ data }));
  const { store, close } = await openStore(await settingsOfPast(settings), () => undefined);
  try {
    // The first steps of a new session may still be in its process's journal.
    await settleJournals(settings);
    return await requireSession(await store.latest(), name);
  } finally {
    await close();
  }
}

/** Serves the review page for the data folder, read-only, until the process ends. */
export async function servePage(name: string | undefined, flags: ShowFlags, program: ProgramParts): Promise<void> {
  collectOldGarbageSoon();
  const { data, mount, port, logLevel, open } = flags;
  const [{ serverSettings }, { settingsOfPast }, { serveHttp }] = await Promise.all([
    import('../../host/settings.js'),
    import('../../host/past-settings.js'),
    import('../../http/http-server.js'),
  ]);
  const given = { ...defined({ data, mount }), durability: 'process', shareSessions: true, readOnly: true } as const;
  const settings = await settingsOfPast(
    serverSettings(given, { env: process.env, cwd: process.cwd(), version: program.version }),
  );
  const session = name === undefined ? undefined : await namedSession(name, flags);
  const view = session === undefined ? '' : `strip?session=${encodeURIComponent(session)}&live=1`;
  const announce = ({ page }: ServedAddresses): void => {
    const address = (): string => page?.(view) ?? '';
    printText(`The review page is at ${address()}\nIt works until you end this program with Ctrl-C.`);
    if (open) void openBrowser(address()).catch((error: unknown) => tell(String(error)));
  };
  // The server's token is not shown, because the page needs nothing that requires it.
  await serveHttp(settings, {
    port,
    tokenFile: undefined,
    noToken: false,
    logLevel,
    reviewsAll: true,
    copiesBelow: process.cwd(),
    announce,
    ...(await servedContracts(program)),
  });
}
