/** The data folder of the server; undefined if it is the usual one, or if no server answers. */
let dataFolder: string | undefined;

/** Sets the data folder that copied commands name. */
export function nameDataFolder(folder: string | undefined): void {
  dataFolder = folder;
}

/** Quotes a text for a shell. */
const quoted = (text: string): string =>
  /^[A-Za-z0-9_@:./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;

/**
 * Returns a command of Palimpsest to be copied into a shell, on the data folder of this page. Each
 * word is quoted where a shell needs it.
 */
export function command(...words: readonly string[]): string {
  const data = dataFolder === undefined ? [] : ['--data', dataFolder];
  return ['palimpsest', ...words, ...data].map(quoted).join(' ');
}

/**
 * Returns the command that exports a session without secrets, with the typed rules on its standard
 * input. A file of rules could be an older one, and then the export would leak a named text.
 */
export function maskedExport(session: string, rules: string): string {
  const words = ['export', session, '--html', `${session}.html`, '--redact'];
  return rules.trim() === ''
    ? command(...words)
    : `printf '%s\\n' ${quoted(rules)} | ${command(...words, '/dev/stdin')}`;
}
