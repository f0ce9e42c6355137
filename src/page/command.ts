/** The data folder of the server. Undefined if it is the default one, or if there is no server. */
let dataFolder: string | undefined;

/** Sets the data folder that copied commands name. */
export function nameDataFolder(folder: string | undefined): void {
  dataFolder = folder;
}

/** Quotes a text for a shell. */
const quoted = (text: string): string =>
  /^[A-Za-z0-9_@:./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;

/**
 * Returns a Palimpsest command for a shell, with the data folder of this page. Quotes the words
 * that need it.
 */
export function command(...words: readonly string[]): string {
  const data = dataFolder === undefined ? [] : ['--data', dataFolder];
  return ['palimpsest', ...words, ...data].map(quoted).join(' ');
}

/**
 * Returns the command that exports a session without secrets. It passes the typed rules on standard
 * input: a file of rules could be outdated, and the export would then leak a text.
 */
export function maskedExport(session: string, rules: string): string {
  const words = ['export', session, '--html', `${session}.html`, '--redact'];
  return rules.trim() === ''
    ? command(...words)
    : `printf '%s\\n' ${quoted(rules)} | ${command(...words, '/dev/stdin')}`;
}
